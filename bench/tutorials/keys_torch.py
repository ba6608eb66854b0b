# SPDX-License-Identifier: Apache-2.0
"""The tutorial of one net per key with PyTorch: the same net for each key, in applyInPandas.

Fits and scores in one pass and keeps no net, which is the shortest form. Its rate is fixed.
`bench/tutorials/lines keys` runs it.
"""

import torch
import tutorial
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.sql.functions import lit
from torch import nn


def error_of(train, test, broken):
    """The root mean square error of the test rows."""

    # begin
    def scored(rows):
        train, test = rows[~rows.held].dropna(), rows[rows.held]
        if train.empty or test.empty:
            return test.assign(prediction=float("nan"))[columns]
        torch.set_num_threads(1)
        torch.manual_seed(1)
        names = ["weekday", "degrees", "rain"]
        mean, deviation = train[names].astype(float).mean(), train[names].astype(float).std()
        features, test_features = (
            torch.tensor(((rows[names] - mean) / deviation).to_numpy(), dtype=torch.float32)
            for rows in (train, test)
        )
        middle, spread = train.euros.mean(), train.euros.std()
        labels = torch.tensor(((train.euros - middle) / spread).to_numpy(), dtype=torch.float32)
        net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
        optimizer = torch.optim.AdamW(net.parameters(), 0.003)
        for _ in range(60):
            for batch in torch.randperm(len(features)).split(16):
                optimizer.zero_grad()
                nn.functional.mse_loss(net(features[batch])[:, 0], labels[batch]).backward()
                optimizer.step()
        with torch.no_grad():
            scores = net(test_features)[:, 0].numpy() * spread + middle
        return test.assign(prediction=scores)[columns]

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
