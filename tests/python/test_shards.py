# SPDX-License-Identifier: Apache-2.0
"""Shards share a batch: V of b rows compute what one of V·b rows does, but for rounding."""

import pathlib
import sys

import numpy as np

from cafetiere.proto import caffe_pb2
from cafetiere.spark import CaffeEstimator

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "faults"))
import plan  # noqa: E402

ROWS = 128  # each step takes all of them
SOLVER = (
    'base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "fixed" random_seed: 7'
    " display: 20 max_iter: 200"
)


def train(table, shards):
    net = (ROOT / "examples/quickstart/lenet_train_test.prototxt").read_text()
    assert "batch_size: 32" in net
    net = net.replace("batch_size: 32", f"batch_size: {ROWS // shards}")
    workers = min(shards, 2)
    model = CaffeEstimator(
        solver=SOLVER, net=net, featuresCol="image", shards=shards, numWorkers=workers
    ).fit(table)
    losses = {e["step"]: e["loss"] for e in model.events if e["event"] == "progress"}
    layers = caffe_pb2.NetParameter.FromString(model.weights).layer
    weights = [np.array(blob.data) for layer in layers for blob in layer.blobs]
    return losses, np.concatenate(weights)


def test_four_shards_train_what_one_of_four_times_the_batch_does(spark, work):
    plan.write_table(work / "table.parquet", ROWS)
    table = spark.read.parquet(str(work / "table.parquet")).cache()
    one, four = train(table, 1), train(table, 4)
    assert one[0].keys() == four[0].keys() and len(one[0]) >= 10
    for step, loss in one[0].items():
        assert abs(four[0][step] - loss) < 1e-5, step
    assert len(one[1]) == 431_080
    assert np.max(np.abs(one[1] - four[1])) < 1e-4
    assert np.any(one[1] != four[1]), "the sums are rounded in another order"
