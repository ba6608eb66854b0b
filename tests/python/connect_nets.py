# SPDX-License-Identifier: Apache-2.0
"""What the tests train in a classic session and over Spark Connect: the same tables and estimators.

Nothing here needs a JVM.
"""

from cafetiere.spark import CaffeEstimator
from cafetiere.spark.ml import CaffeClassifier, CaffeRegressor

NET = """
layer { name: "data" type: "MemoryData" top: "data" top: "label"
  memory_data_param { batch_size: 8 channels: 2 height: 1 width: 1 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "msra" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
# The state of its test leaves the loss out of what the model predicts with.
SOLVER = "base_lr: 0.1 lr_policy: 'fixed' max_iter: 60 test_state { stage: 'deploy' } test_iter: 1"
FEATURES = "array(cast(x as float), cast(y as float)) as features"


def table(spark):
    """Points on both sides of a line, in an order of their own."""
    return (
        spark.range(400)
        .selectExpr("id", "pmod(hash(id), 200) / 100D - 1 as x", "id % 20 / 10D - 1 as y")
        .selectExpr("*", "if(x > y, 1, 0) as label", "if(x > y, 'over', 'under') as side")
        .selectExpr("*", "3 * x - y as number", "id % 5 = 0 as held")
        .repartition(2, "id")
        .sortWithinPartitions("id")
    )


def net(spark, **params):
    """A net that somebody wrote, and its table."""
    estimator = CaffeEstimator(net=NET, solver=SOLVER, idCol="id", numWorkers=2, **params)
    return estimator, table(spark).selectExpr("id", FEATURES, "cast(label as float) as label")


def classifier(spark):
    """Two classes by their names, some rows held out."""
    params = {"featuresCols": ["x", "y"], "idCol": "id", "batchSize": 16, "numWorkers": 2}
    params |= {"validationFraction": 0.2, "maxEpochs": 4, "baseLr": 0.05, "dropout": 0.1}
    return CaffeClassifier(labelCol="side", **params), table(spark)


def regressor(spark):
    """A number."""
    params = {"featuresCols": ["x", "y"], "idCol": "id", "batchSize": 16, "numWorkers": 2}
    return CaffeRegressor(labelCol="number", layers=[8], maxEpochs=3, **params), table(spark)


def figures(model, rows, columns) -> dict:
    """What tells a fit from another one: its weights, and what it says of each row."""
    said = model.transform(rows).orderBy("id").select(*columns).collect()
    return {
        "sha256": model.summary.sha256,
        "rows_used": model.summary.rows_used,
        "loss": model.summary.loss,
        "said": [[plain(value) for value in row] for row in said],
    }


def plain(value):
    """A value as JSON has it."""
    return list(map(float, value)) if hasattr(value, "__len__") and value != str(value) else value


def all_figures(fitted: dict) -> dict:
    """The figures of each fit, which are the same in both kinds of session."""
    columns = {
        "net": ["ip", "prediction"],
        "classifier": ["rawPrediction", "probability", "prediction", "predictedLabel"],
        "regressor": ["prediction"],
    }
    return {name: figures(model, rows, columns[name]) for name, (model, rows) in fitted.items()}


FITS = ("net", "classifier", "regressor")


def fit_all(spark) -> dict:
    """All of them trained, each with its table."""
    fitted = {}
    for make in (net, classifier, regressor):
        estimator, rows = make(spark)
        fitted[make.__name__] = estimator.fit(rows), rows
    return fitted


# The engines beside the one that is taken by default.
ENGINES = {
    "rounds": {"engine": "rounds", "syncMode": "average", "syncPeriod": 5},
    "survivors": {"survivors": True, "syncMode": "average", "syncPeriod": 5},
}


def engine_figures(spark) -> dict:
    """The figures of a fit on each of them."""
    told = {}
    for name, params in ENGINES.items():
        estimator, rows = net(spark, **params)
        model = estimator.fit(rows)
        told[name] = figures(model, rows, ["ip", "prediction"]) | {"engine": model.summary.engine}
    return told
