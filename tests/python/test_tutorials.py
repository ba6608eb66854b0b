# SPDX-License-Identifier: Apache-2.0
"""The tutorials, cell by cell, in a folder like their own, which is where Jupyter starts them."""

import json
import os
import subprocess
import sys

import pytest
from program import ROOT
from spark_settings import java_options

FOLDER = ROOT / "docs/tutorials"
JAR = ROOT / "jvm/spark/target/cafetiere-spark.jar"

# Runs the cells of a notebook, and tells the numbers that they found.
RUNNER = """
import json, sys

scope = {"__name__": "__main__"}
for number, cell in enumerate(json.load(open(sys.argv[1]))["cells"]):
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), scope)
numbers = {name: value for name, value in scope.items() if isinstance(value, float)}
json.dump(numbers, open("found.json", "w"))
"""


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_tutorial_carries_no_output(path):
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None


def found(name, folder):
    assert JAR.exists(), "the jar has not been built; run tools/build"
    for file in FOLDER.iterdir():
        (folder / file.name).symlink_to(file.resolve())
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, FOLDER / f"{name}.ipynb"],
        cwd=folder,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT / "python"),
            "JDK_JAVA_OPTIONS": java_options(
                spark_ui_enabled="false", spark_sql_shuffle_partitions=2
            ),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "found.json").read_text())


def test_a_table(tmp_path):
    assert found("table", tmp_path)["auc"] > 0.75


@pytest.mark.long
def test_images(tmp_path):
    numbers = found("images", tmp_path)
    assert numbers["right"] > 0.9 and numbers["right_by_regression"] > 0.9


@pytest.mark.long
def test_texts(tmp_path):
    numbers = found("text", tmp_path)
    assert numbers["right_by_counts"] < 0.8 < 0.95 < numbers["right"]


@pytest.mark.long
def test_a_net_of_pytorch_is_fine_tuned(tmp_path):
    numbers = found("finetune", tmp_path)
    assert numbers["right"] > numbers["right_from_nothing"] + 0.05


@pytest.mark.long
def test_a_net_for_each_key(tmp_path):
    numbers = found("keys", tmp_path)
    assert numbers["error_of_each"] < 20 < numbers["error_of_one"]
