# SPDX-License-Identifier: Apache-2.0
"""What `explain` says that a training will take, against what one takes."""

import os
import pathlib
import random
import re
import signal
import struct
import subprocess

import pytest
from program import PROGRAM, ROOT, needs_the_program, run, wait_for

from cafetiere import NetSpec
from cafetiere import layers as L
from cafetiere import params as P

pytestmark = needs_the_program

RULE = 'type: "{}" base_lr: 0.0001 lr_policy: "fixed" momentum: 0.9 random_seed: 1 display: 1\n'
SGD, ADAM = RULE.format("SGD"), RULE.format("Adam")
TESTED = "test_iter: 2 test_interval: 2\n"
DEBUG = "debug_info: true\n"
NO_SNAPSHOT = "snapshot_after_train: false\n"
SNAPSHOT = 'snapshot: 2 snapshot_prefix: "s"\n'


def alexnet():
    """AlexNet's layers for images of 99 x 99, with narrower inner products."""
    n = NetSpec()
    shapes = [{"dim": [4, 3, 99, 99]}, {"dim": [4]}]
    n.data, n.label = L.DummyData(shape=shapes, ntop=2)
    bottom = n.data

    def conv(name, outputs, kernel, **fields):
        nonlocal bottom
        n[name] = L.Convolution(bottom, num_output=outputs, kernel_size=kernel,
                                weight_filler={"type": "xavier"}, **fields)  # fmt: skip
        bottom = n[f"relu_{name}"] = L.ReLU(n[name], in_place=True)

    def pool(name):
        nonlocal bottom
        bottom = n[name] = L.Pooling(bottom, pool=P.Pooling.MAX, kernel_size=3, stride=2)

    conv("conv1", 96, 11, stride=4)
    bottom = n.norm1 = L.LRN(bottom, local_size=5)
    pool("pool1")
    conv("conv2", 256, 5, pad=2, group=2)
    bottom = n.norm2 = L.LRN(bottom, local_size=5)
    pool("pool2")
    conv("conv3", 384, 3, pad=1)
    conv("conv4", 384, 3, pad=1, group=2)
    conv("conv5", 256, 3, pad=1, group=2)
    for name in ("fc6", "fc7"):
        n[name] = L.InnerProduct(bottom, num_output=1024, weight_filler={"type": "xavier"})
        n[f"relu_{name}"] = L.ReLU(n[name], in_place=True)
        bottom = n[f"drop_{name}"] = L.Dropout(n[name], in_place=True)
    n.fc8 = L.InnerProduct(bottom, num_output=100, weight_filler={"type": "xavier"})
    n.loss = L.SoftmaxWithLoss(n.fc8, n.label)
    return str(n.to_proto())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Databases where the nets of examples/ look for them, and an AlexNet."""
    work = tmp_path_factory.mktemp("memory")
    rng = random.Random(1)
    (work / "images").write_bytes(struct.pack(">4i", 0x803, 200, 28, 28) + rng.randbytes(200 * 784))
    (work / "labels").write_bytes(struct.pack(">2i", 0x801, 200) + bytes(200))
    (work / "out/mnist").mkdir(parents=True)
    for part in ("train", "test"):
        run("convert_mnist", "images", "labels", f"out/mnist/{part}_lmdb", cwd=work)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        rows = (bytes(1) + rng.randbytes(3072) for _ in range(100))
        (work / f"{name}.bin").write_bytes(b"".join(rows))
    cifar = work / "out/cifar10"
    cifar.mkdir()
    run("convert_cifar_data", ".", cifar, "lmdb", cwd=work)
    for part in ("train", "test"):
        (cifar / f"cifar10_{part}_lmdb").rename(cifar / f"{part}_lmdb")
    run("compute_image_mean", cifar / "train_lmdb", cifar / "mean.binaryproto", cwd=work)
    (work / "alexnet.prototxt").write_text(alexnet())
    return work


def memory_mib(process, what):
    """VmRSS (now) or VmHWM (the peak) of a running process."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+) kB", status)[1]) / 1024


def measured_mib(folder, solver, threads):
    """By how much a training's peak, over two tests and snapshots, exceeds its program's start."""
    pipe, log = folder / "solver.fifo", folder / "log"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    flags = ["-solver", pipe, "-max_iter", "100000000", "-threads", str(threads)]
    with log.open("wb") as file:
        process = subprocess.Popen([PROGRAM, "train", *flags], cwd=folder, stderr=file)
    with pipe.open("w") as text:  # open as soon as the program has started and reads it
        idle = memory_mib(process, "VmRSS")
        text.write(solver)
    wait_for(lambda: b"Iteration 5, lr" in log.read_bytes(), seconds=300)
    peak = memory_mib(process, "VmHWM")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0
    return peak - idle


def predicted_mib(folder, solver):
    (folder / "solver.prototxt").write_text(solver)
    table = run("explain", "-solver", "solver.prototxt", cwd=folder).split("memory predicted")[1]
    return {row: float(mib) for row, mib in re.findall(r"^(\S.*?) +([\d.]+)$", table, re.M)}


LENET = ROOT / "examples/mnist/lenet_train_test.prototxt"
QUICK = ROOT / "examples/cifar10/quick_train_test.prototxt"
FULL = ROOT / "examples/cifar10/full_train_test.prototxt"


@pytest.mark.parametrize(("net", "settings", "threads"), [
    (LENET, SGD + NO_SNAPSHOT, 1),
    (LENET, SGD + TESTED + SNAPSHOT, 2),
    (QUICK, ADAM + TESTED + DEBUG + NO_SNAPSHOT, 2),
    (FULL, SGD + TESTED + SNAPSHOT, 1),
    ("alexnet.prototxt", SGD + TESTED + NO_SNAPSHOT, 2),
    ("alexnet.prototxt", SGD + DEBUG + NO_SNAPSHOT, 1),
    ("alexnet.prototxt", ADAM + SNAPSHOT, 2),
    ("alexnet.prototxt", SGD + SNAPSHOT + "snapshot_format: HDF5\n", 1),
    ("alexnet.prototxt", SGD + SNAPSHOT + "snapshot_diff: true\n", 2),
])  # fmt: skip
def test_explain_predicts_the_peak_of_a_training(folder, net, settings, threads):
    solver = f'net: "{net}" {settings}'
    predicted = predicted_mib(folder, solver)
    measured = measured_mib(folder, solver, threads)
    print(f"predicted {predicted} MiB, measured {measured:.1f} MiB")
    assert predicted["total"] == pytest.approx(measured, rel=0.1)


def test_explain_counts_what_a_solver_adds(folder):
    def rows(more):
        return predicted_mib(folder, f'net: "{QUICK}" {SGD} {more}')

    plain = rows(NO_SNAPSHOT)
    assert not {"test nets", "debug_info", "while a snapshot is made"} & plain.keys()
    whole = rows(TESTED + DEBUG + SNAPSHOT)
    added = [whole[row] for row in ("test nets", "debug_info", "while a snapshot is made")]
    assert min(added) > 0.1
    assert whole["total"] == pytest.approx(plain["total"] + sum(added), abs=0.02)
    assert whole["a step takes"] == pytest.approx(whole["total"] - added[2], abs=0.02)
