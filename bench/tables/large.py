# SPDX-License-Identifier: Apache-2.0
"""The generated table, learned here, by scikit-learn and by Spark, and the best possible AUC.

    bench/tables/setup-peers
    python bench/tables/generated.py 1000000 out/generated
    python bench/tables/large.py out/generated LEARNER..

LEARNER: cafetiere (on Spark, PySpark's Python), mlp or gbt (Spark's MultilayerPerceptron and GBT),
hgb (scikit-learn's HistGradientBoosting, build/tables/bin/python). On Spark with two executors of
one core.
"""

import pathlib
import sys
import time

import numpy as np
from generated import auc

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUMBERS = ["age", "usage", "price"]


def _session():
    sys.path.insert(0, str(ROOT / "bench"))
    from spark_tables import session

    return session(["spark.driver.memory=2g"], master="local-cluster[2,1,3072]")


def _read(spark, folder):
    return [spark.read.parquet(f"{folder}/{name}.parquet") for name in ("train", "test")]


def _of_spark(folder, estimator_of):
    """Labels and the probabilities that a Spark pipeline gives them; seconds of its fit."""
    spark = _session()
    train, test = _read(spark, folder)
    train = train.repartition(2).cache()
    train.count()
    began = time.time()
    model = estimator_of(train).fit(train)
    seconds = time.time() - began
    rows = model.transform(test).select("label", "probability").toPandas()
    return rows["label"].to_numpy(), np.array([p[1] for p in rows["probability"]]), seconds


def cafetiere(_):
    """Ten epochs, as suits many rows, and otherwise the defaults."""
    from cafetiere.spark.ml import CaffeClassifier

    return CaffeClassifier(featuresCols=["place", "plan", *NUMBERS, "since"], maxEpochs=10)


def _encoded(learner):
    """Spark's way: means for gaps, indices or mean labels for text, parts of dates, one vector."""
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import (
        Imputer,
        OneHotEncoder,
        SQLTransformer,
        StandardScaler,
        StringIndexer,
        TargetEncoder,
        VectorAssembler,
    )

    dates = SQLTransformer(
        statement="SELECT *, double(datediff(since, '1970-01-01')) days, double(dayofyear(since))"
        " day, double(dayofweek(since)) weekday FROM __THIS__"
    )
    numbers = [*NUMBERS, "days", "day", "weekday"]
    texts = ["place", "plan"]
    indices = [f"{name}_index" for name in texts]
    filled = [f"{name}_filled" for name in numbers]
    assembled = [*filled, "place_mean", "plan_one"]
    return Pipeline(
        stages=[
            dates,
            Imputer(inputCols=numbers, outputCols=filled),
            StringIndexer(inputCols=texts, outputCols=indices, handleInvalid="keep"),
            TargetEncoder(
                inputCols=[indices[0]],
                outputCols=["place_mean"],
                smoothing=20.0,
                handleInvalid="keep",
                labelCol="label",
                targetType="binary",
            ),
            OneHotEncoder(inputCols=[indices[1]], outputCols=["plan_one"], handleInvalid="keep"),
            VectorAssembler(inputCols=assembled, outputCol="raw"),
            StandardScaler(inputCol="raw", outputCol="features", withMean=True),
            learner,
        ]
    )


def mlp(train):
    """Two hidden layers, with the default number of steps."""
    from pyspark.ml.classification import MultilayerPerceptronClassifier

    width = 7 + train.select("plan").distinct().count()  # with one for gaps
    return _encoded(MultilayerPerceptronClassifier(layers=[width, 64, 32, 2], seed=1))


def gbt(_):
    """Its defaults, 20 trees."""
    from pyspark.ml.classification import GBTClassifier

    return _encoded(GBTClassifier(seed=1))


def hgb(folder):
    """scikit-learn's trees, with means of the label for the places."""
    import pandas
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder, TargetEncoder

    def frame(name):
        rows = pandas.read_parquet(pathlib.Path(folder) / f"{name}.parquet")
        since = pandas.to_datetime(rows["since"])
        parts = {
            "days": since.astype("int64"),
            "day": since.dt.day_of_year,
            "weekday": since.dt.day_of_week,
        }
        cells = rows[NUMBERS].astype(float).assign(**parts)
        return cells.assign(place=rows["place"].fillna(""), plan=rows["plan"].fillna("")), rows

    (train, told), (test, asked) = frame("train"), frame("test")
    encoder = make_column_transformer(
        (TargetEncoder(random_state=1), ["place"]),
        (OrdinalEncoder(), ["plan"]),
        remainder="passthrough",
    )
    model = make_pipeline(
        encoder, HistGradientBoostingClassifier(categorical_features=[1], random_state=1)
    )
    began = time.time()
    model.fit(train, told["label"])
    seconds = time.time() - began
    return asked["label"].to_numpy(), model.predict_proba(test)[:, 1], seconds


def main():
    """Runs each learner that is named."""
    folder = sys.argv[1]
    for name in sys.argv[2:]:
        learner = globals()[name]
        labels, chances, seconds = learner(folder) if name == "hgb" else _of_spark(folder, learner)
        print(f"| {name} | {auc(labels, chances):.4f} | {seconds:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
