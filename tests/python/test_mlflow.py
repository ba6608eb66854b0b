# SPDX-License-Identifier: Apache-2.0
"""Trainings as MLflow's local files have them."""

import csv
import json
import pathlib

import pytest

mlflow = pytest.importorskip("mlflow", reason="needs mlflow-skinny, which nothing else does")
from cafetiere.spark.ml import CaffeClassifier  # noqa: E402
from cafetiere.spark.mlflow import log_fit  # noqa: E402


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """Files of this machine, which newer versions of MLflow want to be asked for."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())


def test_a_fit_is_logged(spark):
    table = spark.range(1200).selectExpr("id % 7 AS a", "id % 11 AS b", "id % 2 AS label")
    learner = CaffeClassifier(featuresCols=["a", "b"], maxEpochs=3, baseLr=0.01)
    learner.setPricePerCoreHour(2.5).setNumWorkers(2)
    with mlflow.start_run() as run:
        model = log_fit(learner, learner.fit(table))
    kept = mlflow.get_run(run.info.run_id)
    assert kept.data.params["baseLr"] == "0.01"
    assert kept.data.params["maxEpochs"] == "3"
    summary = model.summary
    assert kept.data.metrics["rows_given"] == 1200
    assert kept.data.metrics["cost"] == pytest.approx(summary.account.cost)
    hours = [n for name, n in kept.data.metrics.items() if name.startswith("core_hours.")]
    assert sum(hours) == pytest.approx(summary.account.core_hours.total)
    assert kept.data.tags["cafetiere.sha256"] == summary.sha256
    losses = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
    told = [e for e in model.caffeModel.events if e["event"] == "progress"]
    assert [(m.step, m.value) for m in losses] == [(e["step"], e["loss"]) for e in told]
    files = pathlib.Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id))
    assert (files / "model/net.caffemodel").read_bytes() == model.caffeModel.weights
    assert (files / "model/net.prototxt").read_text() == model.caffeModel.getNet()
    assert json.loads((files / "account.json").read_text())["cores"] == 2
    assert mlflow.active_run() is None


def test_the_nets_of_keys_are_logged_as_a_table(spark):
    table = spark.range(600).selectExpr(
        "id % 7 AS a", "id % 2 AS label", "if(id = 0, 5, id % 3) AS `a shop`"
    )
    learner = CaffeClassifier(featuresCols=["a"], maxEpochs=2, groupCol="a shop")
    with mlflow.start_run() as run:
        model = log_fit(learner, learner.fit(table))
    kept = mlflow.get_run(run.info.run_id)
    assert kept.data.params["groupCol"] == "a shop"
    assert kept.data.metrics["keys"] == 3 and kept.data.metrics["failed_keys"] == 1
    assert kept.data.metrics["keys_done"] == 4
    told = [e for e in model.summary.course.events if e["event"] == "keys"]
    rates = mlflow.MlflowClient().get_metric_history(run.info.run_id, "keys_per_s")
    assert [(m.step, m.value) for m in rates] == [(e["tasks"], e["keys_per_s"]) for e in told]
    files = pathlib.Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id))
    with (files / "keys.csv").open() as file:
        keys = {row["key"]: row for row in csv.DictReader(file)}
    assert sorted(keys) == ["0", "1", "2", "5"]
    assert keys["1"]["rows"] == "200" and keys["1"]["error"] == ""
    assert keys["5"]["loss"] == "" and "1" in keys["5"]["error"]
    assert not (files / "model").exists()


def test_a_run_that_was_begun_ends_where_logging_fails(spark):
    table = spark.range(200).selectExpr("id % 7 AS a", "id % 2 AS label")
    learner = CaffeClassifier(featuresCols=["a"], maxEpochs=1, numWorkers=1)
    model = learner.fit(table)
    with pytest.raises(FileExistsError):
        log_fit(learner, model, folder=".")
    assert mlflow.active_run() is None
    (run,) = mlflow.search_runs(output_format="list")
    assert run.info.status == "FAILED"


def test_a_run_is_begun_where_there_is_none(spark):
    table = spark.range(200).selectExpr("id % 7 AS a", "id % 2 AS label")
    learner = CaffeClassifier(featuresCols=["a"], maxEpochs=1, numWorkers=1)
    log_fit(learner, learner.fit(table))
    assert mlflow.active_run() is None
    assert len(mlflow.search_runs(output_format="list")) == 1
