# SPDX-License-Identifier: Apache-2.0
"""The wheel's program `cafetiere`: the library's command line, started by Python."""

import pathlib
import re
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
