# SPDX-License-Identifier: Apache-2.0
"""tools/check_status on small trees of its own, with a history."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TOOL = ROOT / "tools/check_status"
HEAD = "| id | what | state | tests | commit |\n|---|---|---|---|---|\n"
FIRST_LINE = 3


def git(root, *command):
    name = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    done = subprocess.run(
        ["git", *name, *command], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("status")
    for name, text in {
        "test": "tests/jvm/shell_test jar\npart_slow() { true; }\n",
        "tests/base/a_test.cc": "TEST(Pool, Runs) {\nTEST_F(Db,\n       Reads) {\n",
        "fuzz/replay_test.cc": "TEST_P(Corpus, ComesBack) {\n",
        "jvm/spark/src/test/java/cafetiere/spark/KillTest.java": (
            '@ParameterizedTest\n@CsvSource({"a,b"})\nvoid dies(int n) {\n}\n'
            "@Test\nvoid lives() throws Exception {\nvoid helper() {\n"
        ),
        "jvm/compat/src/test/scala/libs/DslTest.scala": "@Test def reads(): Unit = {\n",
        "tests/python/test_x.py": "def test_y():\n    pass\n\n\ndef helper():\n    pass\n",
        "tests/jvm/shell_test": "",
        "tests/jvm/forgotten": "",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "begin")
    return root


def check(root, *rows):
    page = root / "docs/status.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text(HEAD + "".join(row + "\n" for row in rows))
    run = subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout


def faults(root, *rows):
    code, out = check(root, *rows)
    assert code == 1
    return [line.removeprefix("docs/status.md:") for line in out.splitlines()]


def test_passes_a_page_whose_tests_are_there(tree):
    commit = git(tree, "rev-parse", "--short", "HEAD")
    tests = "`Pool.Runs`, `Db.Reads`, `Corpus.ComesBack`, `KillTest#dies`, `KillTest#lives`"
    more = "`DslTest#reads`, `test_x.py::test_y`, `tests/jvm/shell_test`, `./test slow`"
    rows = f"| 1 | all | ● | {tests} | {commit} |", f"| B1 | a fault | mended | {more} | {commit} |"
    expected = (0, "check_status: 4 rows, their tests are there\n")
    assert check(tree, *rows, "| 2 | x | ○ | – | – |", "| 3 | y | open | – | – |") == expected


@pytest.mark.parametrize(
    "name",
    [
        "Pool.Walks",
        "KillTest#helper",
        "KillTest#sleeps",
        "test_x.py::test_z",
        "test_x.py::helper",
        "tests/jvm/gone",
        "tests/jvm/forgotten",
        "./test fast",
    ],
)
def test_names_the_line_of_a_test_that_is_not_run(tree, name):
    good = "| 1 | x | ○ | – | – |"
    found = faults(tree, good, f"| 2 | y | ◐ | `{name}` | – |")
    assert found == [f"{FIRST_LINE + 1}: ./test runs no test {name}"]


def test_names_a_commit_that_is_not_in_the_history(tree):
    found = faults(tree, "| 1 | x | ◐ | – | 0123456789 |")
    assert found == [f"{FIRST_LINE}: commit 0123456789 is not in the history"]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| 1 | x | ● | – | – |", "● needs a test and a commit"),
        ("| 1 | x | mended | `Pool.Runs` | – |", "mended needs a test and a commit"),
        ("| 1 | x | done | – | – |", "state 'done': write one of"),
        ("| 1 | x | ◐ | Pool.Runs | – |", "tests 'Pool.Runs': each in backquotes"),
        ("| 1 | x | ◐ | – |", "4 cells instead of 5"),
    ],
)
def test_says_what_is_wrong_with_a_row(tree, row, fault):
    (found,) = faults(tree, row)
    assert found.startswith(f"{FIRST_LINE}: {fault}")


def test_ids_are_used_once(tree):
    row = "| 1 | x | open | – | – |"
    assert faults(tree, row, row) == [f"{FIRST_LINE + 1}: id 1 is there already"]


def test_a_shallow_clone_has_no_commits_to_find(tree, tmp_path):
    git(tree, "commit", "-q", "--allow-empty", "-m", "more")
    git(tmp_path, "clone", "-q", "--depth", "1", tree.as_uri(), "shallow")
    code, out = check(tmp_path / "shallow", "| 1 | x | ◐ | – | 0123456789 |")
    assert code == 0, out


def test_the_projects_own_page():
    run = subprocess.run([sys.executable, TOOL], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
