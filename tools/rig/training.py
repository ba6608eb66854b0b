# SPDX-License-Identifier: Apache-2.0
"""Trainings of the rig: the examples' nets, their batch shared among ranks, and what they log."""

import dataclasses
import datetime
import os
import pathlib
import re
import shutil
import subprocess

from network import BUILT, ROOT

PROGRAM = pathlib.Path(os.environ.get("CAFETIERE", ROOT / "build/release/cli/cafetiere"))


@dataclasses.dataclass(frozen=True)
class Task:
    """A net, and the figure of its tests that a race runs for."""

    example: str
    net: str
    solver: str
    batch: int
    figure: str
    goal: float
    interval: int

    def reached(self, value):
        """Whether a test's figure is at the goal or beyond."""
        return value >= self.goal if self.figure == "accuracy" else value <= self.goal


TASKS = {
    "lenet": Task("mnist", "lenet_train_test", "lenet_solver", 64, "accuracy", 0.97, 50),
    "cifar10_quick": Task("cifar10", "quick_train_test", "quick_solver", 100, "loss", 1.4, 50),
}
MODES = {
    "allreduce": "mode: 'allreduce'",
    "average": "mode: 'average' period: 10",
    "diloco": "mode: 'diloco' period: 10 outer_momentum: 0.5",
    "easgd": "mode: 'easgd' period: 10",
    "downpour": "mode: 'downpour' period: 10",
    "hierarchical": "mode: 'hierarchical' period: 10 group_size: 2",
    "auto": "mode: 'auto'",
}
STAMP = re.compile(r"^.(\d\d\d\d \d\d:\d\d:\d\d\.\d+) +\d+ \S+ (.*)")


def prepare(task, data):
    """The databases of a net's example, made once; the folder they are in."""
    folder = BUILT / task.example
    if folder.exists():
        return folder
    made = BUILT / "making"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    if task.example == "mnist":
        for name, stem in (("train", "train"), ("test", "t10k")):
            files = [next(data.glob(f"{stem}-{kind}*")) for kind in ("images", "labels")]
            subprocess.run([PROGRAM, "convert_mnist", *files, made / f"{name}_lmdb"], check=True)
    else:
        subprocess.run([ROOT / "examples" / "cifar10" / "make_databases", data], check=True)
        for part in ("train_lmdb", "test_lmdb", "mean.binaryproto"):
            source, copy = ROOT / "out" / "cifar10" / part, made / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy)
    made.rename(folder)
    return folder


def write_solver(folder, task, ranks, data, changes):
    """The example's net and solver with some fields changed, the batch shared among ranks."""
    example = ROOT / "examples" / task.example
    net = (example / f"{task.net}.prototxt").read_text()
    net = net.replace(f"out/{task.example}", str(prepare(task, data)))
    net = net.replace(f"batch_size: {task.batch}", f"batch_size: {task.batch // ranks}", 1)
    (folder / "net.prototxt").write_text(net)
    solver = (example / f"{task.solver}.prototxt").read_text()
    changes = {
        "net": f'"{folder}/net.prototxt"',
        "display": 0,
        "snapshot": 0,
        "snapshot_prefix": f'"{folder}/race"',
        **changes,
    }
    for field, value in changes.items():
        solver = re.sub(rf"^{field}: .*\n", "", solver, flags=re.M) + f"{field}: {value}\n"
    (folder / "solver.prototxt").write_text(solver)
    return folder / "solver.prototxt"


def train(solver):
    """The command of one rank alone, in one thread."""
    return [str(word) for word in (PROGRAM, "train", "--solver", solver, "--threads", "1")]


def train_together(solver, mode, ranks, rank, address):
    """The command of one of many ranks."""
    words = ["--sync", MODES[mode], "--ranks", ranks, "--rank", rank]
    words += ["--meet", solver.parent / "meet", "--bind", address]
    return train(solver) + [str(word) for word in words]


def read_log(lines):
    """Yields (seconds, what was said) of a program's log."""
    for line in lines:
        if match := STAMP.match(line):
            now = datetime.datetime.strptime("2000" + match[1], "%Y%m%d %H:%M:%S.%f")
            yield now.timestamp(), match[2].strip()
