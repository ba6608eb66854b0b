# SPDX-License-Identifier: Apache-2.0
"""A program of a thin client: fits, transforms, saves and loads; what it sees goes to a file.

Its arguments are a folder for models and the file.
"""

import json
import sys

from connect_nets import all_figures, classifier, fit_all, net
from pyspark.ml import Pipeline, PipelineModel
from pyspark.sql import SparkSession

from cafetiere.spark import CaffeEstimator, CaffeModel, RunReport
from cafetiere.spark.ml import CaffeClassificationModel, CaffeClassifier


def main():
    """Does all of it in one session."""
    folder, out = sys.argv[1:]
    spark = SparkSession.builder.getOrCreate()
    fitted = fit_all(spark)
    seen = {"figures": all_figures(fitted)}
    seen |= told(spark, *fitted["net"])
    seen["loaded"] = all_figures(saved(fitted, folder))
    seen["labels"] = fitted["classifier"][0].labels
    seen["repr"] = repr(fitted["classifier"][0])
    seen["pipeline"] = pipeline(spark, folder)
    seen["refused"] = refused(spark, fitted)
    with open(out, "w") as file:
        json.dump(seen, file)


def told(spark, model, rows) -> dict:
    """What a model tells, and what the report says of its run."""
    report = RunReport(owner=model.uid).transform(spark.range(1)).collect()
    every = RunReport().transform(spark.range(1)).count()
    (row,) = report
    return {
        "weights": len(model.weights),
        "net": model.getNet(),
        "events": [event["event"] for event in model.events],
        "curve": len(model.summary.history),
        "run": {name: row[name] for name in ("state", "step", "steps", "owner", "summary")},
        "is_its_own": row.owner == model.uid,
        "summary": model.result,
        "every_run": every,
        "core_hours": model.summary.account.core_hours.total,
    }


def saved(fitted: dict, folder: str) -> dict:
    """The same models, from the disk."""
    loaded = {}
    for name, (model, rows) in fitted.items():
        path = f"{folder}/{name}"
        model.write().overwrite().save(path)
        loaded[name] = type(model).load(path), rows
        assert loaded[name][0].uid == model.uid
    inner = CaffeModel.load(f"{folder}/classifier/net")
    assert inner.weights == RemoteWeights.of(loaded["classifier"][0])
    estimator, _ = net(*[fitted["net"][1].sparkSession])
    estimator.save(f"{folder}/estimator")
    again = CaffeEstimator.load(f"{folder}/estimator")
    assert again.getSolver() == estimator.getSolver() and again.getNumWorkers() == 2
    return loaded


class RemoteWeights:
    """The weights of a model for tables, which has no property for them."""

    @staticmethod
    def of(model) -> bytes:
        """Asked for as CaffeModel does."""
        from cafetiere.spark.connect import told

        return told(model, "weights")


def pipeline(spark, folder: str) -> int:
    """A pipeline's model survives the disk; how many rows it has right."""
    estimator, rows = classifier(spark)
    Pipeline(stages=[estimator]).fit(rows).write().overwrite().save(f"{folder}/pipeline")
    loaded = PipelineModel.load(f"{folder}/pipeline")
    assert isinstance(loaded.stages[0], CaffeClassificationModel)
    return loaded.transform(rows).filter("predictedLabel = side").count()


def refused(spark, fitted: dict) -> dict:
    """What is said where something is wrong or cannot be."""
    estimator, rows = net(spark)
    table = fitted["classifier"][1]
    tries = {
        "column": lambda: CaffeClassifier(labelCol="sid").fit(table),
        "solver": lambda: estimator.copy().setSolver("max_iterations: 3").fit(rows),
        "word": lambda: CaffeClassifier(labelCol="side", optimizer="adam").fit(table),
        "continuous": lambda: CaffeClassifier(labelCol="number").fit(table),
        "file": lambda: CaffeClassifier(labelCol="side", net="/no/net.onnx").fit(table),
        "list": lambda: CaffeClassifier(labelCol="side").fit([1, 2]),
        "groupCol": lambda: CaffeClassifier(labelCol="side", groupCol="id").fit(table),
        "layers": lambda: CaffeClassifier(labelCol="side", layers=[]),
        "explain": lambda: estimator.explain(rows),
        "setValidationData": lambda: estimator.setValidationData(rows),
        "fitFiles": lambda: estimator.fitFiles(spark),
        "caffeModel": lambda: fitted["classifier"][0].caffeModel,
        "exportOnnx": lambda: fitted["classifier"][0].exportOnnx("x.onnx"),
    }
    said = {}
    for name, do in tries.items():
        try:
            do()
            said[name] = ""
        except Exception as e:
            said[name] = f"{type(e).__name__}: {e}"
    return said


if __name__ == "__main__":
    main()
