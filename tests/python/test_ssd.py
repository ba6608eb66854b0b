# SPDX-License-Identifier: Apache-2.0
"""SSD's training from the command line: its data, its loss, and the mean precision of its tests."""

import ctypes.util
import re
import subprocess

import pytest
import ssd_net
from program import PROGRAM, run

pytestmark = pytest.mark.skipif(not ctypes.util.find_library("lmdb"), reason="needs liblmdb.so")

SOLVER = """
net: "net.prototxt" base_lr: 0.002 lr_policy: "fixed" type: "Adam" weight_decay: 0.0005
max_iter: {steps}
display: 20 test_interval: {steps} test_iter: 4 test_initialization: true random_seed: 3
eval_type: "detection" ap_version: "11point" show_per_class_result: true
snapshot_prefix: "ssd"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ssd")
    ssd_net.write_images(folder / "train", 400, seed=1)
    ssd_net.write_images(folder / "test", 64, seed=2)
    (folder / "net.prototxt").write_text(ssd_net.net("train", "test", 16))
    return folder


def train(folder, steps, *options):
    (folder / "solver.prototxt").write_text(SOLVER.format(steps=steps))
    return run("train", "--solver", "solver.prototxt", *options, cwd=folder)


def test_learns_to_find_objects(folder):
    log = train(folder, 300)
    losses = [float(v) for v in re.findall(r"Iteration \d+.*?loss = ([\d.]+)", log)]
    precisions = [float(v) for v in re.findall(r"Test net output #0: map = ([\d.e+-]+)", log)]
    assert losses[-1] < 0.4 * losses[0], losses
    assert len(precisions) == 2 and precisions[0] < 0.1 and precisions[1] > 0.6, precisions
    of_classes = [float(v) for v in re.findall(r"class\d: ([\d.e+-]+)", log)][-2:]
    assert sum(of_classes) / 2 == pytest.approx(precisions[1], abs=1e-5)


def test_the_same_weights_on_any_number_of_threads(folder):
    weights = []
    for threads in ("1", "2"):
        train(folder, 10, "--threads", threads)
        weights.append((folder / "ssd_iter_10.caffemodel").read_bytes())
    assert weights[0] == weights[1]


def test_the_same_precision_on_any_number_of_ranks(folder, tmp_path):
    told = re.compile(r"Test net output #\d+: map = .*|class\d: .*")
    one = train(folder, 40, "--shards", "2", "--threads", "1")
    weights = (folder / "ssd_iter_40.caffemodel").read_bytes()
    flags = ["--solver", "solver.prototxt", "--ranks", "2", "--meet", tmp_path, "--threads", "1"]
    ranks = [
        subprocess.Popen(
            [PROGRAM, "train", *flags, "--shards", "2", "--rank", str(rank)],
            cwd=folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for rank in range(2)
    ]
    logs = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], logs
    assert told.findall(logs[0]) == told.findall(one) and len(told.findall(one)) == 6
    assert (folder / "ssd_iter_40.caffemodel").read_bytes() == weights
