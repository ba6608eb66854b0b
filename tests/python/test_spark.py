# SPDX-License-Identifier: Apache-2.0
"""CaffeEstimator and CaffeModel from Python, on real executors."""

import dataclasses
import functools
import gc
import hashlib
import inspect
import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from blobs import NET, ROWS, points, solver
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.param import Params

from cafetiere.spark import CaffeEstimator, CaffeModel, progress
from cafetiere.spark.ml import CaffeClassifier
from cafetiere.spark.params import TABLE, defaults

SOLVER = solver(60)


@pytest.fixture(scope="module")
def table(spark):
    # In an order of its own even where Spark computes a cached partition again.
    rows = spark.createDataFrame(points()).repartition(3, "id")
    return rows.sortWithinPartitions("id").cache()


def make_estimator(**params):
    return CaffeEstimator(solver=SOLVER, net=NET, numWorkers=2, outputCols=["ip"], **params)


@pytest.fixture(scope="module")
def model(table):
    return make_estimator().fit(table)


def test_learns_and_tells(model):
    result = model.result
    assert result["steps"] == 60
    assert result["rows_given"] == ROWS
    assert all(rows == ROWS for rows in result["rows_per_epoch"][:-1])
    assert result["sha256"] == hashlib.sha256(model.weights).hexdigest()
    assert any(event["event"] == "progress" for event in model.events)
    assert len(model.solverState) > 0


def test_a_bar_takes_the_place_of_the_drivers_line(spark, monkeypatch):
    told = functools.partial(spark.sparkContext.getLocalProperty, "spark.cafetiere.hasProgressBar")
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    with progress.shown(spark, "an estimator"):
        assert told() == "true"
        with progress.shown(spark, "another"):
            assert told() == "true"
        assert told() == "true"
    assert told() is None


def interrupt_in(spark, engine):
    """Sends Ctrl-C to this process once the newest run, of that engine, has trained a while."""
    look, end = progress._look(spark, ""), time.monotonic() + 60
    while time.monotonic() < end:
        for run in json.loads(look()):
            if run["running"] and run["title"].startswith(engine) and "progress" in run:
                os.kill(os.getpid(), signal.SIGINT)
                return
        time.sleep(0.1)


@pytest.mark.parametrize("engine", ["barrier", "rounds"])
def test_ctrl_c_ends_the_run(table, spark, engine):
    before = signal.getsignal(signal.SIGINT)
    endless = make_estimator(engine=engine, maxIter=10**9)
    if engine == "rounds":
        endless.setParams(syncMode="average", syncPeriod=1000)
    interrupter = threading.Thread(target=interrupt_in, args=(spark, engine))
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        endless.fit(table)
    interrupter.join()
    assert list(spark.sparkContext.statusTracker().getActiveJobsIds()) == []
    assert signal.getsignal(signal.SIGINT) is before
    assert make_estimator(maxIter=2).fit(table).summary.steps == 2


def test_the_summary_has_the_fields_of_the_jvm(model, tmp_path):
    summary = model.summary
    assert summary.engine == "barrier"
    assert summary.rows_given == ROWS
    assert summary.rows_used == sum(summary.rows_per_epoch)
    assert summary.rows_per_second > 0
    assert summary.partitions == []
    java = model._java_obj.summary()
    for field in dataclasses.fields(summary):
        if field.name in ("account", "early_stopping"):
            continue
        first, *words = field.name.split("_")
        value = getattr(java, first + "".join(word.capitalize() for word in words))()
        kept = getattr(summary, field.name)
        assert (list(value) if isinstance(kept, list) else value) == kept, field.name
    assert "steps=60,\n" in repr(summary) and "partitions" not in repr(summary)
    assert " s x 2 cores: " in repr(summary) and "CoreHours" not in repr(summary)
    model.write().overwrite().save(str(tmp_path / "model"))
    assert CaffeModel.load(str(tmp_path / "model")).summary == summary


def test_the_account_is_the_jvms(model):
    account, java = model.summary.account, model._java_obj.summary().account()
    assert account.cores == 2 and account.cost == 0
    assert account.seconds == java.seconds()
    assert account.core_hours.computing == java.coreHours().computing() > 0
    assert account.core_hours.total == pytest.approx(2 * account.seconds / 3600)
    assert [rank.rank for rank in account.ranks] == [0, 1]
    assert model.events[-1]["event"] == "account"


def test_a_fit_is_explained(table):
    told = make_estimator().explain(table)
    assert told.rows == ROWS and told.workers == 2 and told.is_probed
    assert told.blobs["ip"][0] * told.workers == told.step_rows
    assert told.epoch_seconds == pytest.approx(told.steps_per_epoch * told.time.total)
    assert told.best_workers in [one.workers for one in told.scaling]
    assert f"{told.parameters:,} parameters" in str(told)
    least = make_estimator().explain(table, probe=False)
    assert not least.is_probed and least.time.computing > 0


def test_every_row_comes_out_in_order(model, table):
    before = [row.id for row in table.collect()]
    after = model.transform(table).collect()
    assert [row.id for row in after] == before
    assert all(len(row.ip) == 3 for row in after)
    assert sum(row.prediction == row.label for row in after) > 0.95 * ROWS


def test_shards_fix_the_weights_for_any_number_of_workers(model, table):
    alone = make_estimator(shards=2).setNumWorkers(1).fit(table)
    assert alone.result["sha256"] == model.result["sha256"]


def test_a_net_trains_on_the_database_that_it_names(spark, tmp_path):
    path = (tmp_path / "points_lmdb").as_uri()
    rows = points()
    rows["data"] = [bytes(int(100 + 40 * x) % 256 for x in point) for point in rows["features"]]
    columns = ["cast(id as string) id", "label", "4 channels", "1 height", "1 width", "data"]
    images = spark.createDataFrame(rows[["id", "label", "data"]]).selectExpr(*columns)
    images.coalesce(1).write.format("lmdb").save(path)
    net = NET.replace("memory_data_param", "transform_param { scale: 0.01 } memory_data_param")
    named = net.replace('"MemoryData"', '"Data"').replace(
        "memory_data_param { batch_size: 8 channels: 4 height: 1 width: 1 }",
        f'data_param {{ source: "{path}" batch_size: 8 backend: LMDB }}',
    )
    estimator = CaffeEstimator(solver=SOLVER, net=net, numWorkers=2, idCol="id")
    by_hand = estimator.setFeaturesCol("data").fit(images)
    assert estimator.copy().setNet(named).fitFiles(spark).weights == by_hand.weights


def test_a_model_survives_the_disk_and_a_pipeline(model, table, tmp_path):
    expected = [row.prediction for row in model.transform(table).collect()]

    model.write().overwrite().save(str(tmp_path / "model"))
    loaded = CaffeModel.load(str(tmp_path / "model"))
    assert loaded.uid == model.uid
    assert loaded.getOutputCols() == ["ip"]
    assert [row.prediction for row in loaded.transform(table).collect()] == expected

    fitted = Pipeline(stages=[make_estimator()]).fit(table)
    fitted.save(str(tmp_path / "pipeline"))
    stages = PipelineModel.load(str(tmp_path / "pipeline")).stages
    assert isinstance(stages[0], CaffeModel)
    assert stages[0].weights == model.weights


def test_an_estimator_survives_the_disk(spark, tmp_path):
    make_estimator(shards=4).save(str(tmp_path / "estimator"))
    loaded = CaffeEstimator.load(str(tmp_path / "estimator"))
    assert loaded.getShards() == 4
    assert loaded.getSolver() == SOLVER


def test_a_wrong_column_is_refused_with_the_nearest_name(table):
    with pytest.raises(Exception, match="feature.*features"):
        make_estimator(featuresCol="feature").fit(table)


def test_params_are_those_of_the_jvm(spark):
    estimator = CaffeEstimator()
    java = estimator._java_obj
    names = {param.name() for param in java.params()}
    assert names == {param.name for param in Params.params.fget(estimator)}
    for param in (param for part in TABLE.values() for param in part):
        name, default = param["name"], param["default"]
        value = java.getDefault(java.getParam(name)).get()
        assert (list(value) if isinstance(default, list) else value) == default, name
        assert java.getParam(name).doc() == estimator.getParam(name).doc


def test_every_param_is_a_keyword():
    for method in (CaffeEstimator.__init__, CaffeEstimator.setParams):
        keywords = {
            name: parameter.default
            for name, parameter in inspect.signature(method).parameters.items()
            if name != "self"
        }
        assert keywords == defaults("shared", "estimator")


def test_keywords_are_set(spark):
    estimator = CaffeEstimator(resize=True, seed=3)
    assert estimator.getResize() and estimator.getSeed() == 3
    assert not estimator.setParams(resize=False).getResize()
    with pytest.raises(TypeError, match="resise"):
        CaffeEstimator(resise=True)
    with pytest.raises(TypeError):
        CaffeEstimator("solver.prototxt")


def test_a_value_that_cannot_be_is_refused_when_it_is_set(spark):
    with pytest.raises(Exception, match="numWorkers is -3: set it to 0 or more"):
        CaffeEstimator(numWorkers=-3)
    estimator = CaffeEstimator(syncMode="average")
    with pytest.raises(Exception, match='syncMode is "averge".*did you mean "average"'):
        estimator.setSyncMode("averge")
    assert estimator.getSyncMode() == "average"


def test_extra_params_stay_with_the_copy(table, model):
    estimator = make_estimator()
    steps = [
        fitted.summary.steps
        for fitted in (
            estimator.fit(table, {estimator.maxIter: 2}),
            *estimator.fit(table, [{estimator.maxIter: 3}, {estimator.seed: 5}]),
        )
    ]
    assert steps[:2] == [2, 3] and steps[2] == model.summary.steps > 3
    assert not estimator._java_obj.isSet(estimator._java_obj.getParam("maxIter"))
    assert model.transform(table, {model.predictionCol: "guess"}).columns[-1] == "guess"
    assert model.transform(table).columns[-1] == "prediction"


def test_a_refused_extra_param_leaves_the_stage_whole(table):
    estimator = make_estimator(maxIter=2)
    for _ in range(2):
        with pytest.raises(Exception, match="numWorkers is -3"):
            estimator.fit(table, {estimator.numWorkers: -3})
        gc.collect()
        assert estimator.fit(table).summary.steps == 2


def test_stages_are_made_in_any_thread(spark):
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(CaffeEstimator, seed=4).result().getSeed() == 4


def test_none_sets_nothing(spark):
    assert CaffeClassifier(labelCol="y", layers=None, thresholds=None).getLayers() == [64, 32]
