# SPDX-License-Identifier: Apache-2.0
"""Trains a net, and a logistic regression of MLlib on what its layer ip1 makes of each image.

    spark-submit --jars cafetiere-all_2.13.jar \
        --conf spark.pythonargs="-conf lenet_solver.prototxt -model file:///tmp/lenet.model" \
        MultiClassLogisticRegression.py

The two tables are those that the net names.
"""

from pyspark import SparkContext
from pyspark.mllib.classification import LogisticRegressionWithLBFGS
from pyspark.mllib.regression import LabeledPoint
from pyspark.sql import SparkSession

from com.yahoo.ml.caffe.CaffeOnSpark import CaffeOnSpark
from com.yahoo.ml.caffe.Config import Config
from com.yahoo.ml.caffe.DataSource import DataSource
from com.yahoo.ml.caffe.RegisterContext import registerContext, registerSQLContext

CLASSES = 10


def points(features):
    """Rows of features as MLlib learns from them."""
    return features.rdd.map(lambda row: LabeledPoint(row["label"][0], row["ip1"]))


def main():
    """Entry point."""
    sc = SparkContext.getOrCreate()
    registerContext(sc)
    registerSQLContext(SparkSession(sc))
    words = sc.getConf().get("spark.pythonargs").split()
    cfg = Config(sc, dict(zip(words[::2], words[1::2], strict=True)))
    cfg.label = "label"
    cfg.features = ["ip1"]

    cos = CaffeOnSpark(sc)
    source = DataSource(sc).getSource(cfg, True)
    held = DataSource(sc).getSource(cfg, False)
    cos.train(source)

    regression = LogisticRegressionWithLBFGS.train(
        points(cos.features(source)), iterations=10, numClasses=CLASSES
    )
    tested = points(cos.features(held))
    pairs = regression.predict(tested.map(lambda p: p.features)).zip(tested.map(lambda p: p.label))
    print(f"accuracy: {pairs.map(lambda pair: float(pair[0] == pair[1])).mean():.4f}")


if __name__ == "__main__":
    main()
