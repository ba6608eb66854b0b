# SPDX-License-Identifier: Apache-2.0
"""Nets as they were trained, exported: data layers become inputs, losses what they apply."""

import pathlib

import numpy as np
import pytest
from bars import make_work
from built import caffe
from onnx_nets import (
    EXPORT,
    GAUSS,
    assert_close,
    layer,
    onnx,
    runtime_scores,
    scores,
)
from program import needs_the_program, run

from cafetiere.proto import caffe_pb2

pytestmark = needs_the_program

MEMORY = (
    'layer { name: "mem" type: "MemoryData" top: "data" top: "label" memory_data_param '
    "{ batch_size: 4 channels: 3 height: 5 width: 5 } }\n"
)
SCORE = layer("InnerProduct", f"inner_product_param {{ num_output: 6 {GAUSS} }}", "data", "score")
LOSS = layer("SoftmaxWithLoss", "", "score label", "loss")

# What follows MEMORY, the outputs that are exported, and what follows INPUT to compute the same.
NETS = {
    "a classifier": (SCORE + LOSS, ["prob"], SCORE + layer("Softmax", "", "score", "prob")),
    "with accuracies in both phases": (
        SCORE
        + LOSS
        + layer("Accuracy", "include { phase: TEST }", "score label", "right")
        + layer("Accuracy", "accuracy_param { top_k: 2 }", "score label", "right2"),
        ["prob"],
        SCORE + layer("Softmax", "", "score", "prob"),
    ),
    "probabilities that have a name": (
        SCORE + layer("SoftmaxWithLoss", "softmax_param { axis: 1 }", "score label", "loss p"),
        ["p"],
        SCORE + layer("Softmax", "", "score", "p"),
    ),
    "a softmax of its own": (
        SCORE + LOSS + layer("Softmax", "", "score", "mine"),
        ["mine"],
        SCORE + layer("Softmax", "", "score", "mine"),
    ),
    "a blob called prob": (
        SCORE + layer("Dropout", "", "score", "prob") + layer("SoftmaxWithLoss", "", "prob label"),
        ["prob_1"],
        SCORE + layer("Softmax", "", "score", "prob_1"),
    ),
    "two heads": (
        SCORE
        + layer("TanH", "", "score", "more")
        + LOSS
        + layer("HingeLoss", "", "more label", "hinge"),
        ["more", "prob"],
        SCORE + layer("TanH", "", "score", "more") + layer("Softmax", "", "score", "prob"),
    ),
    "labels that layers work on": (
        SCORE
        + layer("Reshape", "reshape_param { shape { dim: 4 dim: 1 } }", "label", "flat")
        + layer("Power", "power_param { scale: 2 }", "flat", "twice")
        + layer("SoftmaxWithLoss", "", "score twice"),
        ["prob"],
        SCORE + layer("Softmax", "", "score", "prob"),
    ),
    "an autoencoder": (
        layer("Flatten", "", "data", "flat")
        + layer("InnerProduct", f"inner_product_param {{ num_output: 75 {GAUSS} }}", "flat", "z")
        + layer("SigmoidCrossEntropyLoss", "", "z flat", "entropy")
        + layer("Sigmoid", "", "z", "again")
        + layer("EuclideanLoss", "", "again flat", "distance")
        + layer("Silence", "", "label", "", "quiet"),
        ["again"],
        layer("Flatten", "", "data", "flat")
        + layer("InnerProduct", f"inner_product_param {{ num_output: 75 {GAUSS} }}", "flat", "z")
        + layer("Sigmoid", "", "z", "again"),
    ),
    "parts that are silenced": (
        SCORE
        + layer("Slice", "slice_param { slice_point: 2 }", "score", "a b")
        + layer("SoftmaxWithLoss", "", "a label", "loss")
        + layer("Silence", "", "b label loss", "", "quiet"),
        ["prob"],
        SCORE
        + layer("Slice", "slice_param { slice_point: 2 }", "score", "a b")
        + layer("Softmax", "", "a", "prob")
        + layer("Silence", "", "b", "", "quiet"),
    ),
    "a sum of losses": (
        SCORE
        + LOSS
        + layer("HingeLoss", "", "score label", "hinge")
        + layer("Eltwise", "", "loss hinge", "both"),
        ["prob"],
        SCORE + layer("Softmax", "", "score", "prob"),
    ),
}
INPUT = (
    'layer { name: "data" type: "Input" top: "data" input_param '
    "{ shape { dim: 4 dim: 3 dim: 5 dim: 5 } } }\n"
)


def inputs_of(path="net.onnx"):
    return {
        entry.name: [dim.dim_value for dim in entry.type.tensor_type.shape.dim]
        for entry in onnx.load(path).graph.input
    }


def check_scores(outputs):
    """net.onnx scores as deploy.prototxt with the same weights."""
    net = caffe.Net("deploy.prototxt", "net.caffemodel", caffe.TEST)
    net.blobs["data"].data[...] = np.random.default_rng(1).normal(size=net.blobs["data"].shape)
    expected = scores(net)
    assert sorted(expected) == outputs
    assert_close(runtime_scores("net.onnx", {"data": net.blobs["data"].data}), expected)


@pytest.mark.parametrize("layers, outputs, deploy", NETS.values(), ids=NETS.keys())
def test_a_training_net_is_written_in_its_deploy_form(work, layers, outputs, deploy):
    pathlib.Path("net.prototxt").write_text(MEMORY + layers)
    pathlib.Path("deploy.prototxt").write_text(INPUT + deploy)
    caffe.Net("net.prototxt", caffe.TRAIN).save("net.caffemodel")
    log = run("export_onnx", *EXPORT, "net.onnx", cwd=".")
    assert "Input 'data' of shape 4 3 5 5 (300) in place of layer mem (MemoryData)" in log
    assert "Leaving out top 'label'" in log
    assert inputs_of() == {"data": [4, 3, 5, 5]}
    check_scores(outputs)


def test_labels_that_the_net_computes_with_stay_inputs(work):
    text = (
        MEMORY + SCORE + layer("Reshape", "reshape_param { shape { dim: 0 dim: 1 } }", "label", "l")
    )
    text += layer("Concat", "", "score l", "all") + layer("EuclideanLoss", "", "all all")
    pathlib.Path("net.prototxt").write_text(text)
    caffe.Net("net.prototxt", caffe.TRAIN).save("net.caffemodel")
    run("export_onnx", *EXPORT, "net.onnx", cwd=".")
    assert inputs_of() == {"data": [4, 3, 5, 5], "label": [4]}


@pytest.fixture(scope="module")
def bars(tmp_path_factory):
    """Databases, a net, a solver and what it has trained, as a user has them."""
    folder = make_work(tmp_path_factory.mktemp("bars"), "lmdb")
    run("train", "-solver", "solver.prototxt", cwd=folder)
    return folder


TRAINED = ("-model", "net.prototxt", "-weights", "bars_iter_20.caffemodel")


def test_what_was_trained_is_exported_with_one_command(bars):
    log = run("export_onnx", *TRAINED, "net.onnx", cwd=bars)
    for words in (
        "Input 'data' of shape 10 1 8 8 (640) in place of layer images (Data)",
        "Leaving out top 'label' of layer images",
        "Leaving out layer accuracy (Accuracy)",
        "Layer loss (SoftmaxWithLoss) becomes Softmax 'prob'",
        "Wrote net.onnx",
    ):
        assert words in log
    assert inputs_of(bars / "net.onnx") == {"data": [10, 1, 8, 8]}
    images = np.random.default_rng(2).uniform(size=(10, 1, 8, 8)).astype(np.float32)
    prob = runtime_scores(bars / "net.onnx", {"data": images})["prob"]
    np.testing.assert_allclose(prob.sum(axis=1), 1, rtol=1e-5)


def test_without_the_data_its_shape_is_asked_for(bars, work):
    for name in ("net.prototxt", "bars_iter_20.caffemodel"):
        pathlib.Path(name).write_bytes((bars / name).read_bytes())
    output = run("export_onnx", *TRAINED, "net.onnx", cwd=".", code=1)
    assert "test_db" in output and "--shape data=" in output
    run("export_onnx", *TRAINED, "-shape", "data=1x1x8x8", "net.onnx", cwd=".")
    assert inputs_of() == {"data": [1, 1, 8, 8]}


@pytest.mark.parametrize(
    "shape, words",
    [
        ("dta=1x1x8x8", 'did you mean "data"?'),
        ("data", "such as data=3x227x227"),
        ("data=", "such as data=3x227x227"),
        ("=1x1", "such as data=3x227x227"),
        ("data=1x0x8x8", "such as data=3x227x227"),
        ("data=1x,8x8", "such as data=3x227x227"),
        ("data=1x1x2x2", "layer 'conv'"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(bars, shape, words):
    output = run("export_onnx", *TRAINED, "-shape", shape, "bad.onnx", cwd=bars, code=1)
    assert words in output
    assert not (bars / "bad.onnx").exists()


def test_a_deploy_net_takes_another_batch(work):
    pathlib.Path("net.prototxt").write_text(INPUT + SCORE)
    caffe.Net("net.prototxt", caffe.TEST).save("net.caffemodel")
    run("export_onnx", *EXPORT, "-shape", "data=1x3x5x5", "net.onnx", cwd=".")
    assert inputs_of() == {"data": [1, 3, 5, 5]}


def test_an_input_of_three_tops_and_two_shapes_is_refused(work):
    shape = "shape { dim: 1 dim: 3 }"
    net = (
        'layer { name: "in" type: "Input" top: "a" top: "b" top: "c" input_param { '
        f"{shape} {shape} }} }}\n"
    ) + layer("Eltwise", "", "a b c", "sum")
    weights = caffe_pb2.NetParameter(name="none").SerializeToString()
    with pytest.raises(caffe.Error, match="layer in has 3 tops and 2 shapes"):
        caffe.export_onnx(net, weights, "net.onnx", {"a": [1, 3]})


def test_weights_of_another_net_are_refused(work):
    pathlib.Path("net.prototxt").write_text(INPUT + SCORE)
    caffe.Net("net.prototxt", caffe.TEST).save("net.caffemodel")
    pathlib.Path("net.prototxt").write_text(INPUT + SCORE.replace('name: "score"', 'name: "other"'))
    output = run("export_onnx", *EXPORT, "net.onnx", cwd=".", code=1)
    assert "net.caffemodel: there are no weights for layer 'other'" in output
