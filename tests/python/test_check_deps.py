# SPDX-License-Identifier: Apache-2.0
"""tools/check_deps on small trees of its own."""

import pathlib
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).parents[2] / "tools/check_deps"


def check(root):
    run = subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout


@pytest.fixture
def tree(tmp_path):
    for name, text in {
        "core/deps.txt": "# comment\nbase\nobserve\nlayers\n",
        "core/base/a.h": "",
        "core/observe/b.cc": '#include "core/base/a.h"\n#include "core/observe/c.h"\n',
        "core/layers/relu.cc": '#include "core/observe/c.h"\n',
        "tests/layers/relu.txt": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_passes_a_tree_in_order(tree):
    assert check(tree) == (0, "check_deps: core/ follows core/deps.txt\n")


def test_names_file_and_line_of_an_include_against_the_order(tree):
    (tree / "core/base/a.h").write_text('\n#include "core/observe/c.h"\n')
    code, out = check(tree)
    assert code == 1
    assert out == "core/base/a.h:2: base may not include observe, which comes after it\n"


def test_refuses_relative_includes_and_unknown_folders(tree):
    (tree / "core/base/a.h").write_text('#include "../observe/c.h"\n')
    (tree / "core/extra").mkdir()
    (tree / "core/extra/x.h").write_text("")
    code, out = check(tree)
    assert code == 1
    assert "core/base/a.h:1: ../observe/c.h: write includes from the root" in out
    assert "core/extra/x.h:1: folder extra is not in core/deps.txt" in out


def test_wants_a_case_file_for_each_layer(tree):
    (tree / "tests/layers/relu.txt").unlink()
    assert check(tree) == (1, "core/layers/relu.cc:1: no test: add tests/layers/relu.*\n")
