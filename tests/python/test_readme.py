# SPDX-License-Identifier: Apache-2.0
"""Every fenced block of the documentation runs as it stands, or is marked as text."""

import itertools
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import threading

import numpy as np
import pyspark
import pytest
from program import PROGRAM
from spark_settings import java_options

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
JAR = ROOT / "jvm/spark/target/cafetiere-spark.jar"
COMPAT = ROOT / "jvm/compat/target/2.13/cafetiere-compat_2.13.jar"
SPARK_HOME = pathlib.Path(pyspark.__file__).parent
LANGUAGES = ("sh", "python", "java", "scala")
SECONDS = 300  # for a block


def documents() -> list[pathlib.Path]:
    files = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in files.stdout.split()]


def blocks() -> list:
    """(language, text) of each block."""
    found = []
    for path in documents():
        for number, match in enumerate(BLOCK.finditer(path.read_text()), 1):
            name = f"{path.relative_to(ROOT)}:{number}"
            found.append(pytest.param(*match.groups(), id=name))
    return found


def write_idx(folder: pathlib.Path, part: str, count: int) -> None:
    """Noise and labels in the form of MNIST's files."""
    rng = np.random.default_rng(count)
    images = rng.integers(0, 256, (count, 28, 28), np.uint8)
    labels = (np.arange(count) % 10).astype(np.uint8)
    header = struct.pack(">IIII", 0x803, count, 28, 28)
    (folder / f"{part}-images-idx3-ubyte").write_bytes(header + images.tobytes())
    header = struct.pack(">II", 0x801, count)
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(header + labels.tobytes())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """What a reader has before him: a clone after ./quickstart, and MNIST; all of it small."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "examples", folder / "examples")
    solver = folder / "examples/mnist/lenet_solver.prototxt"
    short = re.sub(r"\b(max_iter|test_interval|snapshot): \d+", r"\1: 10", solver.read_text())
    solver.write_text(re.sub(r"\btest_iter: \d+", "test_iter: 1", short))
    (folder / "jvm").symlink_to(ROOT / "jvm")
    (folder / "docs").symlink_to(ROOT / "docs")
    (folder / "bin").mkdir()
    (folder / "bin/cafetiere").symlink_to(PROGRAM)
    for part, count in (("train", 200), ("t10k", 100)):
        write_idx(folder, part, count)
    make_table = [sys.executable, "examples/quickstart/make_table.py", "--data", ".", "--out"]
    subprocess.run([*make_table, "out/tables"], cwd=folder, check=True, capture_output=True)
    return folder


class Console:
    """Python, or spark-shell, into which a reader puts one block after another."""

    COMMANDS = {
        "python": [sys.executable, "-iqu"],
        "scala": [
            SPARK_HOME / "bin/spark-shell",
            "--master",
            "local[2]",
            "--jars",
            f"{JAR},{COMPAT}",
        ],
    }
    RUN = {
        "python": 'exec(compile(open("{0}").read(), "{0}", "exec"), {{"__name__": "__main__"}})',
        "scala": ":paste {0}",
    }

    def __init__(self, language, place):
        self.language = language
        self.process = subprocess.Popen(
            self.COMMANDS[language],
            cwd=place,
            env=environment(place),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, script) -> str:
        """What it prints until it has run a script, has ended, or has had its time."""
        line = self.RUN[self.language].format(script)
        # In halves, as a console may show what it reads.
        self.process.stdin.write(f'{line}\nprint("o" + "ver\\n")\n')
        self.process.stdin.flush()
        timer = threading.Timer(SECONDS, self.process.kill)
        timer.start()
        lines = itertools.takewhile(lambda line: not line.endswith("over\n"), self.process.stdout)
        printed = "".join(lines)
        timer.cancel()
        return printed

    def close(self):
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.wait(SECONDS)


@pytest.fixture(scope="module")
def consoles(place):
    """A console of each language, begun by the first block in it."""
    begun = {}

    def console(language):
        if language not in begun or begun[language].process.poll() is not None:
            begun[language] = Console(language, place)
        return begun[language]

    yield console
    for one in begun.values():
        one.close()


def environment(place: pathlib.Path) -> dict:
    """What a reader has set, on one machine."""
    return {
        **os.environ,
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "python"),
        "JDK_JAVA_OPTIONS": java_options(
            spark_ui_enabled="false",
            spark_driver_host="127.0.0.1",
            spark_driver_bindAddress="127.0.0.1",
        ),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def run(command: list, place: pathlib.Path):
    """Runs a block as a program."""
    done = subprocess.run(
        command,
        cwd=place,
        env=environment(place),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not (PROGRAM and JAR.exists()), reason="the project has not been built")
@pytest.mark.parametrize(("language", "text"), blocks())
def test_block(language, text, place, consoles):
    if language == "text":
        return
    assert language in LANGUAGES, f"say what the block is: {', '.join(LANGUAGES)} or text"
    script = place / f"snippet.{language}"
    # Consoles go on after an error, so a block in one tells that it came to its end.
    end = 'print("the " + "end of it\\n")\n' if language in Console.COMMANDS else ""
    script.write_text(text + end)
    if language in ("sh", "java"):
        run({"sh": ["sh", "-e", script], "java": ["java", "-cp", JAR, script]}[language], place)
        return
    printed = consoles(language).run(script)
    assert "the end of it" in printed, printed


def test_relative_links_lead_somewhere():
    for path in documents():
        text = re.sub(r"`[^`\n]*`", "", path.read_text())  # Scala has brackets of the same look
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (path.parent / target).exists(), f"{path.relative_to(ROOT)}: {target}"
