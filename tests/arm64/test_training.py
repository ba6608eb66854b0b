# SPDX-License-Identifier: Apache-2.0
"""The arm64 program trains, byte for byte, what the x86-64 one trains without generated code.

`tools/arm64 --test` builds both and runs this.
"""

import os
import pathlib
import subprocess

import pytest
from bars import SOLVER, write_idx

ROOT = pathlib.Path(__file__).parents[2]
QEMU = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]
PROGRAMS = {
    "arm64": [*QEMU, ROOT / "build/arm64/cli/cafetiere"],
    "x86-64": [ROOT / "build/release/cli/cafetiere"],
}
ENVIRONMENT = {**os.environ, "LIBXSMM_TARGET": "generic"}

NET = """
name: "Bars"
layer {
  name: "images" type: "Data" top: "data" top: "label"
  transform_param { scale: 0.00390625 mirror: true }
  data_param { source: "train_db" batch_size: 16 backend: LMDB }
}
layer {
  name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 20 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } }
}
layer { name: "norm" type: "BatchNorm" bottom: "conv1" top: "norm" }
layer { name: "relu" type: "ReLU" bottom: "norm" top: "norm" }
layer { name: "lrn" type: "LRN" bottom: "norm" top: "lrn" lrn_param { local_size: 3 } }
layer {
  name: "pool" type: "Pooling" bottom: "lrn" top: "pool"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 }
}
layer {
  name: "conv2" type: "Convolution" bottom: "pool" top: "conv2"
  convolution_param { num_output: 13 kernel_size: 3 weight_filler { type: "msra" } }
}
layer { name: "tanh" type: "TanH" bottom: "conv2" top: "conv2" }
layer { name: "drop" type: "Dropout" bottom: "conv2" top: "conv2" }
layer {
  name: "ip" type: "InnerProduct" bottom: "conv2" top: "ip"
  inner_product_param { num_output: 4 weight_filler { type: "gaussian" std: 0.1 } }
}
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def start(machine, *arguments, cwd):
    return subprocess.Popen(
        [*PROGRAMS[machine], *arguments],
        cwd=cwd,
        env=ENVIRONMENT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def wait(process):
    log = process.communicate(timeout=300)[0]
    assert process.returncode == 0, log


@pytest.fixture
def train(tmp_path):
    """Trains on these machines, one rank each; returns the weights' bytes."""

    def run(*machines):
        folder = tmp_path / "-".join(machines)
        folder.mkdir()
        write_idx(folder, "train", 50, 1)
        convert = ["convert_mnist", "train-images", "train-labels", "train_db"]
        wait(start(machines[0], *convert, cwd=folder))
        (folder / "net.prototxt").write_text(NET)
        solver = SOLVER.replace("test_iter: 3 test_interval: 10", "")
        (folder / "solver.prototxt").write_text(solver)
        flags = ["train", "--solver", "solver.prototxt", "--threads", "2"]
        if len(machines) > 1:
            flags += ["--ranks", str(len(machines)), "--meet", "meet", "--encrypt", "--rank"]
        ranks = [
            start(machine, *flags, *([str(rank)] if len(machines) > 1 else []), cwd=folder)
            for rank, machine in enumerate(machines)
        ]
        for rank in ranks:
            wait(rank)
        return (folder / "bars_iter_20.caffemodel").read_bytes()

    return run


def test_one_process(train):
    assert train("arm64") == train("x86-64")


def test_two_ranks_with_tls(train):
    assert train("arm64", "arm64") == train("x86-64", "x86-64")


def test_ranks_of_both_kinds_with_tls(train):
    assert train("arm64", "x86-64") == train("x86-64", "x86-64")
