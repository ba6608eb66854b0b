# SPDX-License-Identifier: Apache-2.0
"""The tutorial of one net per key with XGBoost: one booster per key, in applyInPandas.

Fits and scores in one pass and keeps no model, which is the shortest form.
`bench/tutorials/lines keys` runs it.
"""

import tutorial
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.sql.functions import lit
from xgboost import XGBRegressor


def error_of(train, test, broken):
    """The root mean square error of the test rows."""

    # begin
    def scored(rows):
        train, test = rows[~rows.held].dropna(), rows[rows.held]
        if train.empty or test.empty:
            return test.assign(prediction=float("nan"))[columns]
        features = ["weekday", "degrees", "rain"]
        model = XGBRegressor(max_depth=3, n_jobs=1).fit(train[features], train.euros)
        return test.assign(prediction=model.predict(test[features]))[columns]

    columns = ["id", "euros", "prediction"]
    train = train.unionByName(broken).withColumn("held", lit(False))
    rows = train.unionByName(test.withColumn("held", lit(True)))
    predicted = rows.groupBy("shop").applyInPandas(
        scored, "id long, euros double, prediction double"
    )
    error_of_each = RegressionEvaluator(labelCol="euros").evaluate(predicted)
    # end
    return error_of_each


if __name__ == "__main__":
    tutorial.run("keys", error_of)
