# SPDX-License-Identifier: Apache-2.0
"""The wheel's program `cafetiere`: the library's command line, started by Python."""

import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from built import caffe

from cafetiere._library import library

ROOT = pathlib.Path(__file__).parents[2]
START = [sys.executable, "-c", "import sys, cafetiere_cli; sys.exit(cafetiere_cli.main())"]
pytestmark = pytest.mark.skipif(
    not hasattr(library(), "cft_main"), reason="the library has no command line"
)

SOLVER = """
base_lr: 0.01 lr_policy: "fixed" max_iter: 100000000 display: 1 snapshot_prefix: "s"
net_param {
  layer { name: "data" type: "DummyData" top: "data" top: "label"
    dummy_data_param { shape { dim: 4 dim: 8 } shape { dim: 4 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
    inner_product_param { num_output: 3 } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
}
"""


@pytest.fixture(autouse=True)
def source_tree(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))


def run(*arguments, **options):
    return subprocess.run(
        [*START, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        check=False,
        **options,
    )


def test_output_and_status_are_the_programs():
    done = run("version")
    assert (done.returncode, done.stdout) == (0, f"cafetiere version {caffe.__version__}\n")
    done = run("trian")
    assert done.returncode == 2
    assert re.match("cafetiere: .*train", done.stderr)


def test_arguments_need_not_be_text(tmp_path):
    done = run("train", "-solver", b"\xff.prototxt", cwd=tmp_path)
    assert done.returncode == 1
    assert "prototxt" in done.stderr


def test_without_the_library_there_is_one_line(monkeypatch):
    monkeypatch.setenv("CAFETIERE_LIBRARY", "/nowhere/libcafetiere.so")
    done = run("version")
    assert done.returncode == 1
    assert done.stderr.startswith("cafetiere: libcafetiere.so was not found")


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_signals_reach_the_engine(tmp_path, name):
    (tmp_path / "solver.prototxt").write_text(SOLVER)
    effects = ["-sigint_effect", "stop", "-sighup_effect", "stop"]
    with subprocess.Popen(
        [*START, "train", "-solver", "solver.prototxt", *effects],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        guard = threading.Timer(60, process.kill)
        guard.start()
        while "Iteration 1" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.Signals[name])
        rest = process.stderr.read()
        guard.cancel()
    assert process.returncode == 0
    assert "Optimization stopped early." in rest


@pytest.fixture
def parquet(tmp_path):
    """A table as a file, and as a folder of two."""
    arrow, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"x": [i % 7 for i in range(200)], "y": ["no", "yes"] * 100})
    (tmp_path / "rows").mkdir()
    files.write_table(table, tmp_path / "table.parquet")
    files.write_table(table.slice(0, 120), tmp_path / "rows/part-0.parquet")
    files.write_table(table.slice(120), tmp_path / "rows/part-1.parquet")
    return tmp_path


def test_parquet_is_learned_and_predicted(parquet):
    flags = ["-label", "y", "--epochs=1"]
    told = []
    for table in ("table.parquet", "rows"):
        done = run("fit", table, *flags, cwd=parquet)
        assert done.returncode == 0, done.stderr
        told.append(done.stdout)
        model = table.partition(".")[0] + ".model"
        assert f"to predict: cafetiere predict {model} TABLE" in done.stdout
        done = run("predict", model, table, "--all", cwd=parquet)
        assert done.stdout.startswith("x,y,prediction,probability,probability_no,probability_yes\n")
        assert len(done.stdout.splitlines()) == 201
    assert "200 rows; learning y (2 classes) from 1 column: 1 number; 0 empty cells" in told[1]
    weights = [
        (parquet / name / "model.caffemodel").read_bytes() for name in ("table.model", "rows.model")
    ]
    assert weights[0] == weights[1]
    (parquet / "t.csv").write_text("x,y\n1,no\n2,yes\n", encoding="utf-8")
    done = run(
        "fit", "t.csv", *flags, "--test", "rows", cwd=parquet
    )  # a table beside it is one, too
    assert "rows: accuracy" in done.stdout, done.stderr
    shutil.copytree(parquet / "rows", parquet / "out")  # a table by the name of the flag
    done = run("fit", "out", *flags, cwd=parquet)
    assert "model: out.model" in done.stdout, done.stderr
    done = run("fit", "t.csv", *flags, "--out", "rows", cwd=parquet)  # what is written is none
    assert done.returncode == 0 and "wait data" in done.stderr
    done = run("fit", "table.parquet", "--label", "z", "--out", "other", cwd=parquet)
    assert done.returncode == 1 and "there is no column 'z'; there are x, y" in done.stderr
    done = run("fit", "none.parquet", "--label", "z", cwd=parquet)
    assert done.stderr == "cafetiere: none.parquet: No such file or directory\n"
    done = run("fit", "table.parquet", "--lable", "z", cwd=parquet)
    assert done.returncode == 2 and done.stderr.startswith("usage: cafetiere fit")


def test_parquet_without_its_reader(parquet):
    script = "import sys; sys.modules['pyarrow'] = None; " + START[2]
    for command in ("fit", "predict"):
        done = subprocess.run(
            [sys.executable, "-c", script, command, "table.parquet", "--label", "y"],
            cwd=parquet, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1 and not done.stdout
        assert done.stderr == (
            "cafetiere: table.parquet is Parquet, which pyarrow reads, and that is not installed: "
            f"{sys.executable} -m pip install pyarrow\n"
        )
    package = "import sys; sys.modules['pyarrow'] = None; import cafetiere.__main__ as m; "
    done = subprocess.run(
        [sys.executable, "-c", package + "sys.exit(m.main())", "fit", "rows", "--label", "y"],
        cwd=parquet, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "python -m pip install pyarrow" in done.stderr


def test_a_file_that_is_no_parquet(parquet):
    (parquet / "text.parquet").write_text("x,y\n", encoding="utf-8")
    done = run("fit", "text.parquet", "--label", "y", cwd=parquet)
    assert done.returncode == 1
    assert done.stderr.startswith("cafetiere: text.parquet cannot be read as Parquet: ")


def test_what_is_missing_in_parquet(parquet):
    files, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    cells = {"a": [None, "", "p", "q"], "b": [1.0, float("nan"), None, 2.0], "y": ["u", "v"] * 2}
    files.write_table(arrow.table(cells), parquet / "gaps.parquet")
    done = run("fit", "gaps.parquet", "--label", "y", "--epochs", "1", cwd=parquet)
    assert "1 number, 1 category; 4 empty cells\n" in done.stdout, done.stderr
    done = run("fit", "gaps.parquet", "--label", "a", "--out", "other", cwd=parquet)
    assert 'column "a" is empty in 2 of 4 rows, first in row 1 below' in done.stderr


def test_names_of_columns_in_parquet(parquet):
    files, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    twice = arrow.table([arrow.array([1]), arrow.array([2])], names=["x", "x"])
    files.write_table(twice, parquet / "twice.parquet")
    done = run("fit", "twice.parquet", "--label", "x", cwd=parquet)
    assert done.stderr == "cafetiere: twice.parquet: two columns are called 'x'; rename one\n"
