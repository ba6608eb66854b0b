# SPDX-License-Identifier: Apache-2.0
"""The examples' scripts as they stand, on solvers of two steps a stage and a few made-up images."""

import os
import re
import shutil
import subprocess
import tarfile

import numpy as np
import pytest
from PIL import Image
from program import PROGRAM, ROOT, needs_the_program
from test_readme import write_idx

pytestmark = needs_the_program

CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def write_mnist(folder):
    for part in ("train", "t10k"):
        write_idx(folder, part, 20)


def write_cifar(folder):
    """Two JPEG images a class and part: one part as a folder, one as an archive."""
    rng = np.random.default_rng(1)
    for part in ("train", "test"):
        for name in CLASSES:
            (folder / part / name).mkdir(parents=True)
            for i in range(2):
                pixels = rng.integers(0, 256, (32, 32, 3), np.uint8)
                Image.fromarray(pixels).save(folder / part / name / f"{i}.jpg")
    with tarfile.open(folder / "test.tar.gz", "w:gz") as archive:
        archive.add(folder / "test", "test")
    shutil.rmtree(folder / "test")


def shorten(text):
    """Two steps a stage; the stages of a training follow each other (…, _lr1, _lr2)."""
    for name, value in {"test_iter": 1, "test_interval": 2, "display": 1, "batch_size": 4}.items():
        text = re.sub(rf"\b{name}: \d+", f"{name}: {value}", text)
    return text


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of what the scripts need of the project."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools/common.sh", folder / "tools")
    for path in folder.glob("examples/*/*.prototxt"):
        text = shorten(path.read_text())
        stage = re.search(r"_lr(\d)", path.name)
        steps = 2 + 2 * int(stage[1] if stage else 0)
        path.write_text(re.sub(r"\bmax_iter: \d+", f"max_iter: {steps}", text))
    for name, write in {"mnist": write_mnist, "cifar10": write_cifar}.items():
        (folder / "data" / name).mkdir(parents=True)
        write(folder / "data" / name)
    return folder


def run(project, *command, program=PROGRAM):
    return subprocess.run(
        [project / command[0], *command[1:]],
        env={**os.environ, "CAFETIERE": str(program)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("example", "data", "arguments", "model"),
    [
        ("mnist", "mnist", [], "mnist/lenet_iter_2"),
        ("cifar10", "cifar10", [], "cifar10/quick_iter_4"),
        ("cifar10", "cifar10", ["full"], "cifar10/full_iter_6"),
        ("resnet20", "cifar10", [], "resnet20/short_iter_2"),
        ("resnet20", "cifar10", ["full"], "resnet20/full_iter_2"),
    ],
)
def test_trains(project, example, data, arguments, model):
    done = run(project, f"examples/{example}/train", project / "data" / data, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"accuracy on the test images: [01]", done.stdout), done.stdout
    assert (project / f"out/{model}.caffemodel").exists()


def test_labels_are_the_classes_places_in_the_alphabet(project):
    done = run(project, "examples/cifar10/make_databases", project / "data/cifar10")
    assert done.returncode == 0, done.stderr
    lines = (project / "out/cifar10/test.txt").read_text().splitlines()
    assert lines == [f"{name}/{i}.jpg {k}" for k, name in enumerate(CLASSES) for i in range(2)]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["examples/mnist/train", "/nowhere"], "/nowhere has neither train-images-idx3-ubyte"),
        (["examples/cifar10/train", "/nowhere", "slow"], "no net 'slow'; there are quick and full"),
        (["examples/resnet20/train", "/nowhere", "slow"], "no schedule 'slow'"),
    ],
)
def test_says_what_is_wrong(project, command, reason):
    done = run(project, *command)
    assert done.returncode == 1 and reason in done.stderr


def test_says_that_the_program_is_missing(project):
    done = run(project, "examples/mnist/train", "data", program="/nowhere/cafetiere")
    assert done.returncode == 1 and "run ./quickstart first" in done.stderr


@pytest.mark.parametrize("name", ["mnist/train", "cifar10/train", "resnet20/train"])
def test_tells_how_it_is_used(project, name):
    done = run(project, f"examples/{name}")
    assert done.returncode == 0 and f"examples/{name} DIR" in done.stdout
    assert "set -euo" not in done.stdout
