# SPDX-License-Identifier: Apache-2.0
"""The table tutorial with XGBoost on Spark, its estimator in a Pipeline.

A date becomes the number of its day, a city the number of its category. XGBoost itself has a
direction for missing numbers. `bench/tutorials/lines table` runs it.
"""

import tutorial
from pyspark.ml import Pipeline
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.ml.feature import StringIndexer
from pyspark.sql.functions import col, unix_date
from xgboost.spark import SparkXGBClassifier


def auc_of(train, test):
    """The area under ROC of the test rows."""
    # begin
    bought, day = (col("buys") == "yes").cast("double"), unix_date("since")
    train = train.withColumns({"bought": bought, "day": day})
    test = test.withColumns({"bought": bought, "day": day})
    indexer = StringIndexer(inputCol="city", outputCol="place", handleInvalid="keep")
    classifier = SparkXGBClassifier(
        features_col=["age", "visits", "day", "place"],
        feature_types=["q", "q", "q", "c"],
        label_col="bought",
        max_depth=3,
        learning_rate=0.1,
        seed=7,
    )
    model = Pipeline(stages=[indexer, classifier]).fit(train)
    auc = BinaryClassificationEvaluator(labelCol="bought").evaluate(model.transform(test))
    # end
    return auc


if __name__ == "__main__":
    tutorial.run("table", auc_of)
