# SPDX-License-Identifier: Apache-2.0
"""CaffeOnSpark's notebooks and scripts, cell by cell, on the data that they draw."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from test_caffeonspark import JARS, ROOT

FOLDER = ROOT / "examples/caffeonspark"

# Runs the cells of the notebooks named, and tells what they found.
RUNNER = """
import json, sys

found = {}
for name in sys.argv[1:]:
    cells = json.load(open(f"{name}.ipynb"))["cells"]
    scope = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}, cell {number}", "exec"), scope)
    found[name] = {key: value for key, value in scope.items()
                   if isinstance(value, float) or key in ("result", "last")}
    if "last" in found[name]:
        found[name]["last"] = [row["accuracy"][0] for row in scope["last"].values()]
json.dump(found, open("found.json", "w"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("notebooks") / "caffeonspark"
    shutil.copytree(FOLDER, made)
    (made / "run_cells.py").write_text(RUNNER)
    return made


def run(folder, *command, flags=""):
    for jar in JARS:
        assert jar.exists(), f"there is no {jar}; run tools/build"
    arguments = [
        "--master local[2]",
        f"--jars {','.join(map(str, JARS))}",
        f'--conf "spark.pythonargs={flags}"',
        "--conf spark.ui.enabled=false",
        "--conf spark.sql.shuffle.partitions=2",
        "--driver-java-options -XX:TieredStopAtLevel=1",
        "pyspark-shell",
    ]
    environment = {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": " ".join(arguments),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT / "python"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_carries_no_output(path):
    book = json.loads(path.read_text())
    assert book["nbformat"] == 4
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None


def found(folder, *names):
    """What the cells found, by notebook."""
    run(folder, "run_cells.py", *names)
    return json.loads((folder / "found.json").read_text())


def test_the_cells_that_tell_what_is_in_pictures_run(folder):
    assert found(folder, "ImageCaptioning")["ImageCaptioning"]["right"] > 0.9


@pytest.mark.long
def test_all_cells_and_both_scripts_run(folder):
    names = ("DLDemo", "NetworkDefinitionDemo", "ImageCaptioning")
    digits, grid, pictures = found(folder, *names).values()
    assert digits["result"]["accuracy"][0] > 0.9
    assert digits["by_argmax"] == pytest.approx(digits["result"]["accuracy"][0], abs=1e-6)
    assert digits["by_regression"] > 0.8
    assert len(grid["last"]) == 4 and max(grid["last"]) > 0.8
    assert grid["right"] > 0.8
    assert pictures["right"] > 0.9

    model = (folder / "script.model").as_uri()
    flags = f"-conf lenet_solver.prototxt -model {model}"
    out = run(folder, "MultiClassLogisticRegression.py", flags=flags)
    assert float(re.search(r"accuracy: ([\d.]+)", out)[1]) > 0.8

    paths = {
        "input": "coco/rows",
        "model": folder / "captions.model",
        "imagenet": folder / "caption_image.prototxt",
        "lstmnet": folder / "caption_words.prototxt",
        "vocab": folder / "coco/vocab",
        "output": "told",
    }
    run(folder, "ImageCaption.py", flags=" ".join(f"-{k} {v}" for k, v in paths.items()))
    lines = "".join(part.read_text() for part in (folder / "told").glob("part-*")).splitlines()
    assert len(lines) == 60
    told = {json.loads(line)["prediction"] for line in lines}
    assert {"a red square", "a green bar"} <= told
