# SPDX-License-Identifier: Apache-2.0
"""Deploy nets that are made trainable."""

import pytest
from program import ROOT, needs_the_program

import cafetiere as caffe
from cafetiere.proto import caffe_pb2

pytestmark = needs_the_program

SOLVER = "base_lr: 0.01 lr_policy: 'fixed' max_iter: 3"


@pytest.fixture(scope="module")
def shapes():
    return caffe.import_onnx(ROOT / "docs/tutorials/shapes.onnx")


def blobs(weights):
    net = caffe_pb2.NetParameter.FromString(weights)
    return {layer.name: [list(blob.data) for blob in layer.blobs] for layer in net.layer}


def trained(spark, shapes, folder, frozen):
    """The weights before and after three steps on random rows of five classes."""
    from cafetiere.spark import CaffeEstimator

    text, weights = shapes
    net = caffe.trainable(text, weights, 5, batch=4, frozen=frozen, images=False)
    start = folder / "shapes.caffemodel"
    start.write_bytes(weights)
    rows = spark.range(20).selectExpr(
        "id", "transform(sequence(1, 1024), i -> float(i * id % 7)) features", "float(id % 5) label"
    )
    estimator = CaffeEstimator(net=net, solver=SOLVER, weights=str(start), idCol="id")
    return blobs(weights), blobs(estimator.fit(rows).weights)


def test_frozen_layers_stay_and_the_last_one_begins_anew(spark, shapes, tmp_path):
    before, after = trained(spark, shapes, tmp_path, frozen=["Convolution", "/10/Gemm"])
    assert len(after["/12/Gemm/new"][1]) == 5
    for name in ("/0/Conv", "/3/Conv", "/6/Conv", "/10/Gemm"):
        assert after[name] == before[name]


def test_layers_that_are_not_frozen_learn(spark, shapes, tmp_path):
    before, after = trained(spark, shapes, tmp_path, frozen=["/0/Conv"])
    assert after["/0/Conv"] == before["/0/Conv"] and after["/10/Gemm"] != before["/10/Gemm"]


def test_rows_have_the_inputs_shape_and_softmax_goes(shapes):
    text, weights = shapes
    text += 'layer { name: "prob" type: "Softmax" bottom: "scores" top: "prob" }'
    net = caffe.trainable(text, weights, 3, scale=0.5)
    assert "channels: 1" in net and "height: 32" in net and "width: 32" in net
    assert "image_encoded: true" in net and "scale: 0.5" in net and "batch_size: 32" in net
    assert 'type: "Softmax"' not in net and 'type: "SoftmaxWithLoss"' in net


def test_what_cannot_be_is_told(shapes):
    text, weights = shapes
    with pytest.raises(ValueError, match="no layer has the name or type 'conv1'; there are"):
        caffe.trainable(text, weights, 3, frozen=["conv1"])
    relu = 'layer { name: "last" type: "ReLU" bottom: "scores" top: "scores" }'
    with pytest.raises(ValueError, match="has 1 of the first and ends in ReLU"):
        caffe.trainable(text + relu, weights, 3)
