# SPDX-License-Identifier: Apache-2.0
"""Nets as ONNX models: written, scored by onnxruntime, and read back."""

import pathlib

import numpy as np
import pytest
from built import caffe
from onnx_nets import (
    CONV,
    EXPORT,
    FORKS,
    LAYERS,
    assert_close,
    check_export,
    export,
    image,
    import_net,
    layer,
    random_net,
    recurrent,
    scores,
)
from onnx_nets import inputs as inputs_of
from program import ROOT, needs_the_program, run

onnx = pytest.importorskip("onnx")

pytestmark = needs_the_program


def check_round_trip(text):
    """What is written scores the same elsewhere and, read back, here."""
    feeds, expected = check_export(text)
    back = import_net()
    for name, value in feeds.items():
        if name in back.blobs:
            back.blobs[name].data[...] = value
    assert_close(scores(back), expected)
    return back


@pytest.mark.parametrize("name", LAYERS | FORKS)
def test_layers_are_written_and_read_back(work, name):
    check_round_trip((LAYERS | FORKS)[name])


@pytest.mark.parametrize(
    "kind, parameters, words",
    [
        ("Dropout", "dropout_param { sample_weights_test: true }", "drops at random"),
        ("BN", "bn_param { bn_mode: LEARN }", "normalises by the batch"),
        ("Interp", "interp_param { zoom_factor: 2 pad_beg: -1 }", "no ONNX form"),
        ("Reorg", "reorg_param { stride: 1 }", "Reorg"),
    ],
)
def test_what_forks_have_and_onnx_has_not_is_refused(work, kind, parameters, words):
    random_net(image(layer(kind, parameters)))
    assert words in run("export_onnx", *EXPORT, "net.onnx", cwd=".", code=1)


WHOLE = ("attention", "causal attention", "lstm", "rnn", "gelu", "gelu by tanh")
WHOLE += tuple(name for name in FORKS if name.startswith("normalize"))


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_written_in_many_nodes_is_read_as_one_layer(work, name):
    back = check_round_trip((LAYERS | FORKS)[name])
    kinds = [entry.type for entry in back.layers if entry.type not in ("Input", "Split")]
    assert [kind.lower() for kind in kinds] == [name.split()[-1 if "att" in name else 0]]


def change(model, what):
    node = model.graph.node
    if what == "a node is another":
        next(n for n in node if n.op_type == "Softmax").attribute[0].i = 2
    elif what == "a node is gone":
        node.remove(node[-1])
    elif what == "a constant is another":
        scale = next(n for n in node if n.op_type == "Mul").input[1]
        constant = next(c for c in model.graph.initializer if c.name == scale)
        constant.raw_data = np.float32(0.25).tobytes()
    elif what == "a value is read elsewhere":
        next(n for n in node if n.op_type == "MatMul").input[0] = "x"
    elif what == "the text is another":
        node[0].doc_string = node[0].doc_string.replace("num_heads: 2", "num_heads: 4")
    elif what == "the text is no layer":
        node[0].doc_string += "}"
    elif what == "the type is another":
        node[0].doc_string = node[0].doc_string.replace('"Attention"', '"ReLU"')


@pytest.mark.parametrize(
    "what, words",
    [
        ("a node is another", "is not the one that follows"),
        ("a node is gone", "the file ends before"),
        ("a constant is another", "is another"),
        ("a value is read elsewhere", "is not read where it should be"),
        ("the text is another", "is"),
        ("the text is no layer", "doc_string"),
        ("the type is another", "not written out in nodes"),
    ],
)
def test_a_whole_layer_that_was_changed_is_refused(work, what, words):
    export(LAYERS["attention"])
    model = onnx.load("net.onnx")
    change(model, what)
    onnx.save(model, "net.onnx")
    output = run("import_onnx", "net.onnx", "n.prototxt", "n.caffemodel", cwd=".", code=1)
    assert "node '" in output and words in output


def test_a_sequence_too_long_to_be_written_is_refused(work):
    random_net(inputs_of((5000, 1, 1), (5000, 1)) + recurrent("RNN", "x y", "t"))
    output = run("export_onnx", *EXPORT, "out.onnx", cwd=".", code=1)
    assert "5000 steps" in output


def deploy_form(path):
    """A net's text without what only training needs; sources become an Input."""
    from google.protobuf import text_format

    from cafetiere.proto import caffe_pb2

    net = text_format.Parse(path.read_text(), caffe_pb2.NetParameter())
    kept = caffe_pb2.NetParameter(name=net.name)
    for entry in net.layer:
        if entry.type.endswith("Loss") or entry.type == "Accuracy":
            continue
        if entry.type == "Data":
            if kept.layer:
                continue
            entry = caffe_pb2.LayerParameter(name="data", type="Input", top=["data"])
            entry.input_param.shape.add().dim.extend([2, 1, 28, 28])
        kept.layer.add().CopyFrom(entry)
    return text_format.MessageToString(kept)


EXAMPLES = sorted((ROOT / "examples").glob("nets/*.prototxt"))
EXAMPLES += [ROOT / "examples/mnist/lenet_train_test.prototxt"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_nets_are_written_and_read_back(work, path):
    check_round_trip(deploy_form(path))


def test_what_has_no_form_is_named(work):
    random_net(image(CONV))
    patches = layer("Im2col", "convolution_param { kernel_size: 2 }", "y", "f", "patches")
    pathlib.Path("net.prototxt").write_text(image(CONV, patches))
    output = run("export_onnx", *EXPORT, "out.onnx", cwd=".", code=1)
    assert "layer 'patches'" in output and "Im2col has no ONNX form" in output
    assert not pathlib.Path("out.onnx").exists()


def test_damaged_models_are_refused(work):
    export(image(CONV, layer("Softmax", "", "y", "p")))
    whole = pathlib.Path("net.onnx").read_bytes()
    random = np.random.default_rng(3)
    for trial in range(60):
        damaged = bytearray(whole)
        if trial % 2:
            damaged = damaged[: random.integers(len(whole))]
        else:
            for at in random.integers(len(whole), size=8):
                damaged[at] = random.integers(256)
        pathlib.Path("bad.onnx").write_bytes(damaged)
        try:
            run(
                "import_onnx",
                "bad.onnx",
                "bad.prototxt",
                "bad.caffemodel",
                cwd=".",
                errors="replace",
            )
        except AssertionError as refusal:
            assert str(refusal).startswith("cafetiere: bad.onnx: "), refusal


def test_a_refusal_from_python_names_the_file(work):
    pathlib.Path("bad.onnx").write_bytes(b"no model")
    with pytest.raises(caffe.Error, match="^bad.onnx: is not an ONNX model"):
        caffe.import_onnx("bad.onnx")


def test_from_python_as_from_the_program(work):
    export(image(CONV, layer("Softmax", "", "y", "p")))
    run("import_onnx", "net.onnx", "read.prototxt", "read.caffemodel", cwd=".")
    text, weights = caffe.import_onnx("net.onnx")
    assert text == pathlib.Path("read.prototxt").read_text()
    assert weights == pathlib.Path("read.caffemodel").read_bytes()
    caffe.export_onnx(pathlib.Path("net.prototxt").read_text(), "net.caffemodel", "again.onnx")
    assert pathlib.Path("again.onnx").read_bytes() == pathlib.Path("net.onnx").read_bytes()
    with pytest.raises(ValueError, match="'net.prototxt' is no prototxt's text: if it is a path"):
        caffe.export_onnx("net.prototxt", "net.caffemodel", "out.onnx")
    with pytest.raises(caffe.Error, match="Im2col has no ONNX form"):
        patches = layer("Im2col", "convolution_param { kernel_size: 2 }", "y", "f", "patches")
        caffe.export_onnx(image(CONV, patches), "net.caffemodel", "out.onnx")
