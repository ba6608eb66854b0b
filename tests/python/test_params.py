# SPDX-License-Identifier: Apache-2.0
"""One table has the params: what Python makes of it, its types, its page, and who names a param."""

import ast
import inspect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from pyspark.ml.param import Param

from cafetiere.spark import CaffeEstimator, CaffeModel, params
from cafetiere.spark.ml import (
    CaffeClassificationModel,
    CaffeClassifier,
    CaffeRegressionModel,
    CaffeRegressor,
)
from cafetiere.spark.params import (
    ML_TABLE,
    TABLE,
    ClassificationParams,
    ClassifierParams,
    EstimatorParams,
    PredictionParams,
    RegressionParams,
    RegressorParams,
    TableModelParams,
    TableParams,
)

ROOT = pathlib.Path(__file__).parents[2]
TOOL = "tools/params"
JSON = "jvm/spark/src/main/resources/cafetiere/spark/params.json"
ML_JSON = "jvm/spark/src/main/resources/cafetiere/spark/ml/params.json"
PARAMS = [param for part in TABLE.values() for param in part]
NEW = {"name": "warmth", "type": "int", "default": 7, "least": 2, "doc": ["Degrees of the cup."]}
NEW["since"] = "9.9.0"

# Where a param is read or set besides the class that has it, and why.
MORE_PLACES = {
    # Preflight looks at the cluster where net or table are wrong, and there is no plan to ask.
    # -devices N gives each worker N shards.
    "numWorkers": {"preflight/Preflight.java", "submit/SubmittedRun.java"},
    "shards": {"submit/SubmittedRun.java", "submit/Flags.java"},
    # Of ranks that must all be there, tables are opened once they can be.
    "engine": {"submit/SubmittedRun.java"},
    # An accuracy is a row's own where rows are alone. In training it is a field of the solver.
    "batchSize": {"submit/SubmittedRun.java", "plan/SolverSettings.java"},
    "survivors": {"preflight/Preflight.java"},
    # CheckpointFolder asks for Spark's setting of the same name.
    "checkpointDir": {"preflight/Preflight.java", "store/CheckpointFolder.java"},
    # The command line has files, tables and blobs where the params have texts and columns.
    # MLflow's artefact of a model has its net.
    # A key's net becomes a CaffeModel.
    "net": {"submit/SubmittedRun.java", "submit/Flags.java", "mlflow.py", "keyed/KeyedNets.java"},
    "solver": {"submit/SubmittedRun.java"},
    "featuresCol": {"submit/SubmittedRun.java", "submit/NetTable.java"},
    "labelCol": {"submit/SubmittedRun.java", "submit/NetTable.java"},
    "idCol": {"submit/SubmittedRun.java", "submit/NetTable.java"},
    "outputCols": {"keyed/KeyedNets.java", "submit/SubmittedRun.java"},
    "predictionCol": {"submit/SubmittedRun.java"},
    "validationIndicatorCol": {"submit/SubmittedRun.java"},
    # A layer with a new_height has its images made to fit.
    "resize": {"submit/SubmittedRun.java"},
    # -snapshot needs -weights, and is a file's name by default.
    "weights": {"submit/Flags.java"},
    "snapshot": {"submit/SubmittedRun.java", "submit/Flags.java"},
    # CaffeOnSpark took its words in any case.
    "connection": {"submit/Flags.java"},
}


def capital(name):
    return name[0].upper() + name[1:]


def stub(root, folder):
    """The stub as tools/params writes it."""
    file = folder / "params.pyi"
    subprocess.run([root / TOOL, "stub", file], check=True)
    return ast.parse(file.read_text()).body


def stub_classes(root, folder):
    """The classes of the stub, by name: methods by name, and names of attributes."""
    return {
        node.name: (
            {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)},
            {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)},
        )
        for node in stub(root, folder)
        if isinstance(node, ast.ClassDef)
    }


def test_the_stub_has_what_the_module_has(tmp_path):
    named = {getattr(node, "name", None) for node in stub(ROOT, tmp_path)} - {None}
    made = {
        name
        for name, value in vars(params).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == params.__name__
    }
    assert named == made


@pytest.mark.parametrize(
    "cls",
    [
        PredictionParams,
        EstimatorParams,
        TableModelParams,
        ClassificationParams,
        RegressionParams,
        TableParams,
        ClassifierParams,
        RegressorParams,
    ],
)
def test_the_stub_has_what_the_class_has(cls, tmp_path):
    methods, attributes = stub_classes(ROOT, tmp_path)[cls.__name__]
    assert attributes == {name for name, value in vars(cls).items() if isinstance(value, Param)}
    there = {name for name, value in vars(cls).items() if inspect.isfunction(value)} - {"_set"}
    assert set(methods) == there
    for name, node in methods.items():
        signature = inspect.signature(getattr(cls, name))
        arguments = [*node.args.args, *node.args.kwonlyargs]
        assert [argument.arg for argument in arguments] == list(signature.parameters), name
        assert len(node.args.kwonlyargs) == sum(
            parameter.kind is parameter.KEYWORD_ONLY for parameter in signature.parameters.values()
        )
        for argument in arguments[1:]:
            kind = signature.parameters[argument.arg].annotation
            assert ast.unparse(argument.annotation).partition("[")[0] == kind.__name__, name


def test_every_public_method_says_what_it_does():
    tables = (CaffeClassifier, CaffeClassificationModel, CaffeRegressor, CaffeRegressionModel)
    for cls in (CaffeEstimator, CaffeModel, *tables):
        for name, method in inspect.getmembers(cls, inspect.isfunction):
            if re.match("[gs]et[A-Z]", name):
                assert inspect.getdoc(method), name
    said = inspect.getdoc(CaffeEstimator.setNumWorkers)
    assert "Tasks that train together." in said and "Default: 0." in said


def test_the_table_is_in_order():
    keys = {"name", "type", "default", "doc", "flag", "file", "least", "range", "words", "since"}
    for param in [*PARAMS, *(param for part in ML_TABLE.values() for param in part)]:
        assert set(param) <= keys, param["name"]
        assert param["doc"][-1].endswith("."), param["name"]
    for table in (TABLE, ML_TABLE):
        names = [param["name"] for part in table.values() for param in part]
        assert len(names) == len(set(names))


def test_the_page_is_what_the_table_says():
    subprocess.run([ROOT / TOOL, "check"], check=True)


@pytest.fixture
def tree(tmp_path):
    """A tree in which somebody has added a param to the table, and done nothing else."""
    for name in (TOOL, JSON, ML_JSON, "python/cafetiere/spark/params.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    table = json.loads((ROOT / JSON).read_text())
    table["estimator"].append(NEW)
    (tmp_path / JSON).write_text(json.dumps(table))
    return tmp_path


def test_a_line_of_the_table_is_all_that_a_param_takes(tree):
    stale = subprocess.run([tree / TOOL, "check"], capture_output=True, text=True, check=False)
    assert stale.returncode == 1 and "run tools/params page" in stale.stderr
    subprocess.run([tree / TOOL, "page"], check=True)
    assert (
        "| `warmth` | int (at least 2) | `7` | `-warmth` |" in (tree / "docs/params.md").read_text()
    )

    subprocess.run([tree / TOOL, "java", tree / "java"], check=True)
    java = (tree / "java/cafetiere/spark/CaffeParams.java").read_text()
    for line in (
        "default IntParam warmth() {",
        'ParamChecks.atLeast("warmth", 2)',
        "default int getWarmth() {",
        "default CaffeEstimator setWarmth(int value) {",
        "setDefault(warmth(), 7);",
        "@since 9.9.0",
    ):
        assert line in java

    methods, attributes = stub_classes(tree, tree)["EstimatorParams"]
    assert "warmth" in attributes and {"getWarmth", "setWarmth"} <= set(methods)
    assert "warmth: int=..." in ast.unparse(methods["__init__"].args).replace(" = ", "=")

    script = (
        "import runpy; params = runpy.run_path('python/cafetiere/spark/params.py')\n"
        "cls = params['EstimatorParams']; print(cls.warmth.doc, cls.setWarmth.__doc__)"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stdout.startswith("Degrees of the cup. Sets warmth; returns the object."), told


def places(param):
    """The product's sources that read or set a param, or name its flag; package ml is apart."""
    quoted = {param["name"], param.get("flag") or param["name"]}
    anywhere = re.compile(rf"\b[gs]et{capital(param['name'])}\(")
    flags = re.compile(rf'"({"|".join(quoted)})"')
    java = ROOT / "jvm/spark/src/main/java/cafetiere/spark"
    found = set()
    for path in [*java.rglob("*.java"), *(ROOT / "python/cafetiere/spark").glob("*.py")]:
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        if path.parent.name == "ml":
            continue
        is_submit = path.parent.name == "submit"
        if anywhere.search(text) or (is_submit and flags.search(text)):
            found.add(str(path.relative_to(java)) if path.is_relative_to(java) else path.name)
    return found


def test_params_of_tables_are_used():
    java = ROOT / "jvm/spark/src/main/java/cafetiere/spark/ml"
    text = "".join(path.read_text() for path in java.glob("*.java"))
    for param in (param for part in ML_TABLE.values() for param in part):
        assert f"get{capital(param['name'])}()" in text, param["name"]


@pytest.mark.parametrize("param", PARAMS, ids=lambda param: param["name"])
def test_a_param_is_named_by_the_table_and_by_who_uses_it(param):
    users = places(param) - MORE_PLACES.get(param["name"], set())
    shared = param in TABLE["shared"]
    if shared:
        assert users <= {"CaffeEstimator.java", "CaffeModel.java"}
    assert users, "nothing uses it"
    assert len(users) <= (2 if shared else 1), users
    assert MORE_PLACES.get(param["name"], set()) <= places(param), "an exception too many"
