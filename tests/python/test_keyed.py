# SPDX-License-Identifier: Apache-2.0
"""groupCol from Python: a net for each key, that of a fit on the key's rows alone."""

import json

import pytest
from pyspark.errors import UnsupportedOperationException

from cafetiere.spark.ml import CaffeClassificationModel, CaffeClassifier
from cafetiere.spark.progress import _look

PARAMS = {"labelCol": "answer", "featuresCols": ["x", "y", "town"], "idCol": "id", "layers": [8],
          "batchSize": 16, "maxEpochs": 4, "baseLr": 0.02}  # fmt: skip


@pytest.fixture(scope="module")
def table(spark):
    return (
        spark.range(1200)
        .selectExpr(
            "id",
            "concat('key ', id % 10) as key",
            "randn(1) as x",
            "randn(2) as y",
            "concat('town ', hash(id, 7) % (2 + id % 10)) as town",
        )  # fmt: skip
        .selectExpr("*", "if(key = 'key 9', 'yes', if(x > y, 'yes', 'no')) as answer")
        .repartition(4, "id")
        .sortWithinPartitions("id")
        .cache()
    )


def test_each_key_has_the_net_of_its_rows_alone(table, tmp_path):
    model = CaffeClassifier(groupCol="key", **PARAMS).fit(table)
    nets = {row.key: row for row in model.nets.collect()}
    assert sorted(nets) == [f"key {i}" for i in range(10)]
    assert 'is "yes" in all rows' in nets["key 9"].error
    assert nets["key 9"].weights is None
    for of_one in ("labels", "caffeModel"):
        with pytest.raises(UnsupportedOperationException, match="there is a net for each key"):
            getattr(model, of_one)
    for key in ("key 0", "key 7"):
        own = table.filter(f"key = '{key}'")
        alone = CaffeClassifier(numWorkers=1, **PARAMS).fit(own)
        assert bytes(nets[key].weights) == bytes(alone.caffeModel.weights)
        assert nets[key].classes == alone.labels
        assert nets[key].rows == 120

    model.save(str(tmp_path / "model"))
    loaded = CaffeClassificationModel.load(str(tmp_path / "model"))
    assert loaded.getGroupCol() == "key"
    own = table.filter("key = 'key 7'")
    assert loaded.netOf("key 7").transform(own).count() == own.count()
    right = "sum(int(predictedLabel = answer)) as right"
    (told,) = loaded.transform(table).selectExpr(right, "count(prediction) as told").collect()
    assert told.told == 1080
    assert told.right > 0.8 * told.told


def test_a_session_tells_how_many_keys_are_done(table, spark):
    learner = CaffeClassifier(groupCol="key", **PARAMS)
    learner.fit(table)
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    run = json.loads(_look(spark, learner.uid)())[0]
    assert run["title"] == "a net for each key" and not run["running"]
    progress = run["progress"]
    assert progress["keys"] == 10 and progress["tasks"] == progress["of"]
