# SPDX-License-Identifier: Apache-2.0
"""python -m cafetiere train, time and explain on a net with a Python layer."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]

LAYER = """
import cafetiere as caffe

class Factor(caffe.Layer):
    def setup(self, bottom, top):
        assert self.param_str_ == self.param_str
        self.factor = float(self.param_str_)
    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)
    def forward(self, bottom, top):
        top[0].data[...] = self.factor * bottom[0].data
    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = self.factor * top[0].diff
"""

NET = """
layer { name: "data" type: "DummyData" top: "x" top: "t" dummy_data_param {
  shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 }
  data_filler { type: "constant" value: 1 } data_filler { type: "constant" value: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 2 } }
layer { name: "twice" type: "Python" bottom: "ip" top: "y"
  python_param { module: "factors" layer: "Factor" param_str: "2" } }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
"""

SOLVER = 'net: "net.prototxt" base_lr: 0.05 lr_policy: "fixed" max_iter: 30 display: 10\n' \
         'snapshot_prefix: "s" snapshot_after_train: true'  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "factors.py").write_text(LAYER)
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text(SOLVER)
    return tmp_path


def run(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "cafetiere", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_train_learns_through_the_layer(folder):
    ended = run(folder, "train", "--solver", "solver.prototxt")
    assert ended.returncode == 0, ended.stderr
    weights = folder / "s_iter_30.caffemodel"
    losses = [float(line.split("loss = ")[1]) for line in ended.stderr.splitlines()
              if ", loss = " in line]  # fmt: skip
    assert losses[-1] < losses[0] / 10
    again = run(folder, "train", "--solver", "solver.prototxt", "--weights", weights.name)
    assert again.returncode == 0, again.stderr


def test_train_takes_weights_or_a_snapshot(folder):
    ended = run(folder, "train", "--solver", "solver.prototxt", "--weights", "a", "--snapshot", "b")
    assert ended.returncode == 1
    assert "weights to finetune but not both" in ended.stderr


def test_time_shows_every_layer(folder):
    ended = run(folder, "time", "--model", "net.prototxt", "--iterations", "2")
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["data", "ip", "twice", "loss"]
    assert lines[3].split()[1] == "Python"
    assert lines[-1].startswith("average backward pass: ")


def test_explain_shows_blobs_and_parameters(folder):
    ended = run(folder, "explain", "--model", "net.prototxt", "--phase", "TEST")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[1:] == [
        "ip (InnerProduct): ip 4x2; parameters 2x3 + 2",
        "twice (Python): y 4x2",
        "loss (EuclideanLoss): loss scalar",
        "4 layers, 8 parameter values",
    ]


def test_a_missing_module_is_an_error(folder):
    (folder / "factors.py").unlink()
    ended = run(folder, "explain", "--model", "net.prototxt")
    assert ended.returncode == 1
    assert "No module named 'factors'" in ended.stderr
