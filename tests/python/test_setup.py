# SPDX-License-Identifier: Apache-2.0
"""The folder of Python packages that scripts make: after an interruption, and by two at once."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MAKE = "set -euo pipefail; source tools/common.sh; make_venv .venv-few few.txt"


@pytest.fixture
def tree(tmp_path):
    """A tree with the scripts' functions and a list that asks for no package."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/common.sh", tmp_path / "tools")
    (tmp_path / "tools/few.txt").write_text("# nothing beyond pip\n")
    return tmp_path


def start(tree):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(["bash", "-c", MAKE], cwd=tree, **pipes)


def pip_version(tree):
    return subprocess.run([tree / ".venv-few/bin/python", "-m", "pip", "--version"]).returncode


def test_two_at_once_replace_an_interpreter_without_pip(tree):
    venv = [sys.executable, "-m", "venv", "--without-pip", tree / ".venv-few"]
    subprocess.run(venv, check=True)
    both = [start(tree), start(tree)]
    outputs = [made.communicate(timeout=120)[0] for made in both]
    assert [made.returncode for made in both] == [0, 0], outputs
    assert sorted("installing" in output for output in outputs) == [False, True], outputs
    assert pip_version(tree) == 0
