# SPDX-License-Identifier: Apache-2.0
"""The quickstart's tables."""

import gzip
import json
import pathlib
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq

TOOL = pathlib.Path(__file__).parents[2] / "examples/quickstart/make_table.py"


def make(*args):
    return subprocess.run(
        [sys.executable, TOOL, *map(str, args)], capture_output=True, text=True, check=False
    )


def write_idx(path, values):
    header = (0x800 + values.ndim).to_bytes(4, "big") + np.array(values.shape, ">u4").tobytes()
    body = header + values.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(body) if path.suffix == ".gz" else body)


def write_mnist(folder, train, test):
    rng = np.random.default_rng(1)
    for part, rows, end in (("train", train, ".gz"), ("t10k", test, "")):
        write_idx(folder / f"{part}-images-idx3-ubyte{end}", rng.integers(0, 256, (rows, 28, 28)))
        write_idx(folder / f"{part}-labels-idx1-ubyte{end}", np.arange(rows) % 10)


def test_digits_are_split_by_row_number(tmp_path):
    run = make("--out", tmp_path)
    assert run.returncode == 0, run.stderr
    train = pq.read_table(tmp_path / "train.parquet").to_pydict()
    test = pq.read_table(tmp_path / "test.parquet").to_pydict()
    assert len(train["id"]) == 4000
    assert test["id"] == [i for i in range(5000) if i % 5 == 4]
    assert sorted(train["id"] + test["id"]) == list(range(5000))
    assert {len(image) for image in train["image"]} == {784}
    assert max(train["image"][0]) > 200
    counts = json.loads((tmp_path / "counts.json").read_text())
    assert counts["train"] == {str(c): 400 for c in range(10)}
    assert counts["test"] == {str(c): 100 for c in range(10)}


def test_reads_idx_files_plain_and_compressed(tmp_path):
    write_mnist(tmp_path, 30, 20)
    run = make("--data", tmp_path, "--out", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    test = pq.read_table(tmp_path / "out/test.parquet").to_pydict()
    assert test["id"] == list(range(30, 50))
    assert test["label"] == [i % 10 for i in range(20)]


def test_says_what_is_wrong_with_the_folder(tmp_path):
    run = make("--data", tmp_path, "--out", tmp_path / "out")
    assert run.returncode == 1
    assert "has no train-images-idx3-ubyte" in run.stderr

    write_mnist(tmp_path, 30, 20)
    labels = tmp_path / "t10k-labels-idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:-1])
    assert "is cut short: 19 bytes" in make("--data", tmp_path, "--out", tmp_path / "out").stderr

    labels.write_bytes(b"no idx file")
    assert "is no such IDX file" in make("--data", tmp_path, "--out", tmp_path / "out").stderr
