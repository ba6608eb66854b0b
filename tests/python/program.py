# SPDX-License-Identifier: Apache-2.0
"""The command line program of the newest build, and how tests run it."""

import pathlib
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# The newest build for this machine, whatever its preset.
PROGRAMS = [path for path in ROOT.glob("build/*/cli/cafetiere") if path.parts[-3] != "arm64"]
PROGRAM = max(PROGRAMS, key=lambda path: path.stat().st_mtime, default=None)
needs_the_program = pytest.mark.skipif(PROGRAM is None, reason="the program has not been built")


def run(*arguments, cwd, code=0, **options):
    """Runs the program; returns what it wrote to both streams."""
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)],
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
        **options,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)
