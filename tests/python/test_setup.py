# SPDX-License-Identifier: Apache-2.0
"""The folder of Python packages that scripts make: after an interruption, by two at once, and in
folders with spaces.
"""

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


@pytest.fixture
def spaced(tmp_path):
    """A tree below a name with a space, and its interpreter."""
    tree = tmp_path / "a tree"
    (tree / "tools").mkdir(parents=True)
    (tree / "python").mkdir()
    shutil.copy(ROOT / "tools/common.sh", tree / "tools")
    venv = [sys.executable, "-m", "venv", "--without-pip", tree / ".venv-few"]
    subprocess.run(venv, check=True)
    return tree


def shell(tree, script):
    script = f"set -euo pipefail; source tools/common.sh; {script}"
    done = subprocess.run(["bash", "-c", script], cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_program_starts_in_a_folder_with_a_space(spaced):
    (spaced / "python/cafetiere_cli.py").write_text(
        "import sys\n\n\ndef main():\n    print(sys.argv)\n"
    )
    setup = (ROOT / "tools/setup").read_text()
    link = setup[setup.index("link_package() {") : setup.index("\n}\n") + 3]
    program = spaced / ".venv-few/bin/cafetiere"
    assert shell(spaced, f"{link} link_package .venv-few; .venv-few/bin/cafetiere 'a b' c") == (
        f"{['.venv-few/bin/cafetiere', 'a b', 'c']}\n"
    )
    done = subprocess.run([program, "x"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{[str(program), 'x']}\n"


def test_java_starts_with_an_archive_in_a_folder_with_a_space(spaced):
    if shutil.which("javac") is None:
        pytest.skip("no JDK")
    shell(
        spaced,
        "use_java; touch .venv-few/installed.sha256; mkdir -p build/class-archives; "
        'contents_hash "$JAVA_HOME/release" .venv-few/installed.sha256 '
        ">build/class-archives/.venv-few.jsa.sha256; use_class_archive .venv-few; java -version",
    )
