# SPDX-License-Identifier: Apache-2.0
"""`cafetiere fit` and `python -m cafetiere fit` on the same tables: what both write and say."""

import os
import re
import subprocess
import sys

from program import PROGRAM, ROOT

VISITORS = ROOT / "examples/tables/visitors.csv"
FILES = ("net.prototxt", "model.caffemodel", "table.json")


def run(program, *arguments):
    return subprocess.run(
        [*program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        check=False,
        text=True,
    )


def run_program(*arguments):
    return run([PROGRAM], *arguments)


def run_python(*arguments):
    return run([sys.executable, "-m", "cafetiere"], *arguments)


def both(folder, *arguments):
    """What both say on the same fit, which is to be the same but for the seconds."""
    told = []
    for name, runs in (("program", run_program), ("python", run_python)):
        done = runs("fit", *arguments, "--out", folder / name)
        assert done.returncode == 0, done.stderr
        own = done.stdout.replace(str(folder / name), "MODEL").replace("python -m caf", "caf")
        told.append(re.sub(r"[\d.]+ s,", "s,", own))
    for name in FILES:
        ours, theirs = ((folder / who / name).read_bytes() for who in ("program", "python"))
        assert ours == theirs, name
    assert told[0] == told[1]
    for who in ("program", "python"):
        page = (folder / who / "report.html").read_text(encoding="utf-8")
        assert "<svg" in page and "training loss" in page and "tested" in page
    assert told[0].endswith(
        "model: MODEL\nreport: MODEL/report.html\n"
        "to predict: cafetiere predict MODEL TABLE > predictions.csv\n"
    )
    return told[0]


def refused(table, *arguments):
    """What both say on a fit that they refuse."""
    out = table.parent / "refused"
    runs = [run("fit", table, *arguments, "--out", out) for run in (run_program, run_python)]
    assert all(done.returncode in (1, 2) for done in runs), runs
    assert all("Traceback" not in done.stderr for done in runs), runs
    assert not (out / "table.json").exists()
    return [done.stderr for done in runs]
