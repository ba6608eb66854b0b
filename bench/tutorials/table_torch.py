# SPDX-License-Identifier: Apache-2.0
"""The table tutorial with PyTorch, in one process, its columns prepared by scikit-learn.

Layers, batch, epochs, optimizer and first rate are CaffeClassifier's defaults; the rate is fixed.
`bench/tutorials/lines table` runs it.
"""

import pandas as pd
import torch
import tutorial
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn


def auc_of(train, test):
    """The area under ROC of the test rows."""
    # begin
    torch.manual_seed(7)
    train, test = train.toPandas(), test.toPandas()
    for table in (train, test):
        table["day"] = pd.to_datetime(table.since).map(pd.Timestamp.toordinal)
    encoder = make_column_transformer(
        (
            make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
            ["age", "visits", "day"],
        ),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["city"]),
    )
    features = torch.tensor(encoder.fit_transform(train), dtype=torch.float32)
    test_features = torch.tensor(encoder.transform(test), dtype=torch.float32)
    labels = torch.tensor((train.buys == "yes").to_numpy(), dtype=torch.float32)
    net = nn.Sequential(
        nn.Linear(features.shape[1], 64),
        nn.ReLU(),
        nn.Linear(64, 32),
        nn.ReLU(),
        nn.Linear(32, 1),
    )
    optimizer = torch.optim.AdamW(net.parameters(), 0.003)
    for _ in range(50):
        for batch in torch.randperm(len(features)).split(256):
            optimizer.zero_grad()
            scores = net(features[batch]).squeeze(1)
            nn.functional.binary_cross_entropy_with_logits(scores, labels[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        auc = roc_auc_score(test.buys == "yes", net(test_features).squeeze(1))
    # end
    return auc


if __name__ == "__main__":
    tutorial.run("table", auc_of)
