# SPDX-License-Identifier: Apache-2.0
"""Models of tables that one line of Spark has saved, and the other one loads."""

import os
import pathlib
import subprocess

import pytest

pytestmark = pytest.mark.long

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = """
import sys
from cafetiere.spark import session_builder
from cafetiere.spark.ml import (
    CaffeClassificationModel, CaffeClassifier, CaffeRegressionModel, CaffeRegressor)

spark = session_builder().master("local[1]").config("spark.ui.enabled", False).getOrCreate()
cells = ["id", "id % 7 visits", "if(id % 3 = 0, 'Oslo', 'Bath') city", "id % 2 label"]
table = spark.range(300).selectExpr(*cells)
classes = (CaffeClassifier, CaffeClassificationModel)
numbers = (CaffeRegressor, CaffeRegressionModel)
for place, (learner, kind), key, features in (
    ("whole", classes, "", ["visits", "city"]), ("keyed", classes, "city", ["visits"]),
    ("numbers", numbers, "", ["visits", "city"]),
):
    if sys.argv[1] == "save":
        options = {"labelCol": "label", "idCol": "id", "maxEpochs": 2, "groupCol": key}
        learner(featuresCols=features, **options).fit(table).write().save(place)
    model = kind.load(place)
    print("row", place, model.summary.rows_given, model.summary.rows_used)
    for row in model.transform(table).drop("visits", "city", "label").orderBy("id").collect():
        print("row", place, *row)
"""


def rows_of(venv, what, folder):
    """What the program prints of the models in a folder, which it saves before or not."""
    homes = list((ROOT / venv).glob("lib/python3*/site-packages/pyspark"))
    if not homes:
        pytest.skip(f"there is no {venv}; tools/setup --spark35 makes it")
    python = str(ROOT / venv / "bin/python")
    told = {"PYTHONPATH": str(ROOT / "python"), "SPARK_HOME": str(homes[0]),
            "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}  # fmt: skip
    command = [python, "-c", PROGRAM, what]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | told, text=True, capture_output=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [line for line in done.stdout.splitlines() if line.startswith("row ")]


@pytest.mark.parametrize(("first", "other"), [(".venv", ".venv35"), (".venv35", ".venv")])
def test_the_other_line_predicts_the_same(first, other, tmp_path):
    saved = rows_of(first, "save", tmp_path)
    assert len(saved) == 903
    assert "row keyed 300 600" in saved
    assert rows_of(other, "load", tmp_path) == saved
