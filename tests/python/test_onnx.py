"""ONNX models and safetensors files: written, scored by other programs, and read back."""

import json
import pathlib
import struct

import numpy as np
import pytest
from built import caffe
from test_cli import PROGRAM, ROOT, run

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
helper, numpy_helper = onnx.helper, onnx.numpy_helper

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="the program has not been built")


def layer(kind, parameters="", bottoms="x", tops="y", name=None):
    ends = "".join(f' bottom: "{b}"' for b in bottoms.split())
    ends += "".join(f' top: "{t}"' for t in tops.split())
    return f'layer {{ name: "{name or tops.split()[0]}" type: "{kind}"{ends} {parameters} }}\n'


def inputs(*shapes):
    text = ""
    for name, shape in zip("xyz", shapes, strict=False):
        dims = " ".join(f"dim: {d}" for d in shape)
        text += f'layer {{ name: "in_{name}" type: "Input" top: "{name}"'
        text += f" input_param {{ shape {{ {dims} }} }} }}\n"
    return text


def image(*layers, shape=(2, 6, 7, 9)):
    return inputs(shape) + "".join(layers)


def one(kind, parameters="", **options):
    return image(layer(kind, parameters), **options)


GAUSS = 'weight_filler { type: "gaussian" std: 0.3 } bias_filler { type: "uniform" }'
CONV = layer("Convolution", f"convolution_param {{ num_output: 4 kernel_size: 3 {GAUSS} }}")
POOL = "pooling_param {{ pool: {} {} }}"

# Nets whose ONNX form can be read back, and those with a layer that is written out in many nodes.
BOTH_WAYS = {
    "convolution": one(
        "Convolution",
        "convolution_param { num_output: 4 kernel_h: 3 kernel_w: 2 pad_h: 2 pad_w: 1 stride: 2 "
        f"group: 2 dilation: 2 {GAUSS} }}",
    ),
    "deconvolution": one(
        "Deconvolution",
        "convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 group: 2 "
        f"bias_term: false {GAUSS} }}",
    ),
    "inner product": one("InnerProduct", f"inner_product_param {{ num_output: 5 {GAUSS} }}"),
    "inner product of the last axis": one(
        "InnerProduct", f"inner_product_param {{ num_output: 5 axis: 2 transpose: true {GAUSS} }}"
    ),
    "max pooling, rounded up": one("Pooling", POOL.format("MAX", "kernel_size: 3 stride: 2")),
    "max pooling, padded": one("Pooling", POOL.format("MAX", "kernel_size: 3 stride: 2 pad: 1")),
    "average pooling, rounded up": one(
        "Pooling", POOL.format("AVE", "kernel_size: 2 stride: 2"), shape=(1, 2, 5, 7)
    ),
    "average pooling, padded": one(
        "Pooling", POOL.format("AVE", "kernel_size: 3 stride: 2 pad: 1 round_mode: FLOOR")
    ),
    "global pooling": one("Pooling", POOL.format("AVE", "global_pooling: true")),
    "relu": one("ReLU"),
    "leaky relu": one("ReLU", "relu_param { negative_slope: 0.1 }"),
    "relu 6": one("ReLU6"),
    "prelu": one("PReLU", 'prelu_param { filler { type: "uniform" } }'),
    "shared prelu": one("PReLU", "prelu_param { channel_shared: true }"),
    "elu": one("ELU", "elu_param { alpha: 0.7 }"),
    "sigmoid": one("Sigmoid"),
    "tanh": one("TanH"),
    "bnll": one("BNLL"),
    "absolute": one("AbsVal"),
    "clip": one("Clip", "clip_param { min: -0.5 max: 0.7 }"),
    "swish": one("Swish", "swish_param { beta: 1.5 }"),
    "hard swish": one("HardSwish"),
    "hard sigmoid": one("HardSigmoid"),
    "mish": one("Mish"),
    "power": one("Power", "power_param { power: 2 scale: 0.5 shift: 3 }"),
    "exp": one("Exp", "exp_param { base: 2 scale: 0.5 shift: 0.1 }"),
    "log": one("Log", "log_param { base: 10 scale: 0.5 shift: 9 }"),
    "batch norm and scale": image(
        layer("BatchNorm", "", "x", "n"), layer("Scale", "scale_param { bias_term: true }", "n")
    ),
    "scale over two axes": one("Scale", "scale_param { axis: 1 num_axes: 2 }"),
    "scale by a blob": inputs((2, 3, 4), (2, 3))
    + layer("Scale", "scale_param { axis: 0 }", "x y", "t"),
    "bias": one("Bias", 'bias_param { filler { type: "uniform" } }'),
    "lrn": one("LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.6 k: 2 }"),
    "layer norm": one("LayerNorm", "layer_norm_param { axis: 2 }"),
    "sum": inputs((2, 3), (2, 3))
    + layer("Eltwise", "eltwise_param { coeff: 0.5 coeff: -2 }", "x y", "t"),
    "product": inputs((2, 3), (2, 3))
    + layer("Eltwise", "eltwise_param { operation: PROD }", "x y", "t"),
    "maximum": inputs((2, 3), (2, 3))
    + layer("Eltwise", "eltwise_param { operation: MAX }", "x y", "t"),
    "concat": inputs((2, 3, 4), (2, 5, 4)) + layer("Concat", "", "x y", "t"),
    "slice": image(layer("Slice", "slice_param { axis: 1 slice_point: 2 }", "x", "a b")),
    "split": image(layer("ReLU", "", "x", "a"), layer("TanH", "", "x", "b")),
    "flatten": one("Flatten"),
    "flatten in the middle": one("Flatten", "flatten_param { axis: 1 end_axis: 2 }"),
    "reshape": one("Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: 9 } }"),
    "permute": one("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }"),
    "softmax": one("Softmax"),
    "reduction": one("Reduction", "reduction_param { operation: MEAN axis: 2 coeff: 3 }"),
    "reduction to one": one("Reduction", "reduction_param { operation: SUMSQ }"),
    "resize, corners": one("Interp", "interp_param { height: 11 width: 13 }"),
    "resize, areas": one("Interp", "interp_param { zoom_factor: 2 align_corners: false }"),
    "resize, nearest": one("Interp", "interp_param { zoom_factor: 2 mode: NEAREST }"),
    "in place": image(CONV, layer("ReLU", "", "y", "y", "r"), layer("TanH", "", "y", "y", "t")),
    "dropout at the end": image(CONV, layer("Dropout", "", "y", "y", "d")),
}
ONE_WAY = {
    "average pooling, padded, rounded up": one(
        "Pooling", POOL.format("AVE", "kernel_size: 3 stride: 2 pad: 1"), shape=(1, 2, 6, 8)
    ),
    "gelu": one("GELU"),
    "gelu by tanh": one("GELU", "gelu_param { approximate: TANH }"),
    "threshold": one("Threshold", "threshold_param { threshold: 0.2 }"),
    "lrn within channels": one(
        "LRN", "lrn_param { local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL }"
    ),
    "mvn": one("MVN"),
    "mvn across channels": one(
        "MVN", "mvn_param { across_channels: true normalize_variance: false }"
    ),
    "group norm": one("GroupNorm", "group_norm_param { group: 3 }"),
    "crop": inputs((2, 3, 6, 7), (2, 3, 4, 3))
    + layer("Crop", "crop_param { offset: 1 offset: 2 }", "x y", "t"),
    "tile": one("Tile", "tile_param { axis: 2 tiles: 3 }"),
    "argmax": one("ArgMax", "argmax_param { top_k: 3 out_max_val: true }"),
    "argmax of an axis": one("ArgMax", "argmax_param { axis: 1 }"),
    "embed": inputs((4, 3))
    + layer("Embed", f"embed_param {{ num_output: 5 input_dim: 3 {GAUSS} }}"),
    "attention": one("Attention", f"attention_param {{ num_heads: 2 {GAUSS} }}", shape=(2, 5, 8)),
    "causal attention": one(
        "Attention",
        f"attention_param {{ num_heads: 4 causal: true bias_term: false {GAUSS} }}",
        shape=(1, 6, 8),
    ),
    "lstm": inputs((4, 2, 3), (4, 2))
    + layer("LSTM", f"recurrent_param {{ num_output: 5 {GAUSS} }}", "x y", "t"),
    "rnn": inputs((4, 2, 3), (4, 2))
    + layer("RNN", f"recurrent_param {{ num_output: 5 {GAUSS} }}", "x y", "t"),
}


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def random_net(text, seed=1):
    """A net with its weights saved as net.caffemodel, statistics included, and its inputs set."""
    pathlib.Path("net.prototxt").write_text(text)
    caffe.set_random_seed(seed)
    net = caffe.Net("net.prototxt", caffe.TEST)
    random = np.random.default_rng(seed)
    for kind, blobs in zip([entry.type for entry in net.layers], params_of(net), strict=True):
        if kind == "BatchNorm":
            blobs[0].data[...] = random.normal(size=blobs[0].data.shape)
            blobs[1].data[...] = random.uniform(1, 3, size=blobs[1].data.shape)
            blobs[2].data[...] = 2
        elif kind in ("Scale", "LayerNorm", "GroupNorm"):
            for blob in blobs:
                blob.data[...] = random.normal(size=blob.data.shape)
    net.save("net.caffemodel")
    for name in net.inputs:
        blob = net.blobs[name].data
        indices = "Embed" in text or (name == "y" and "recurrent_param" in text)
        blob[...] = (
            random.integers(2, size=blob.shape) if indices else random.normal(size=blob.shape)
        )
    return net


def params_of(net):
    return [list(entry.blobs) for entry in net.layers]


def scores(net):
    net.forward()
    return {name: net.blobs[name].data.copy() for name in net.outputs if name not in net.inputs}


EXPORT = ("-model", "net.prototxt", "-weights", "net.caffemodel")


def export(text):
    net = random_net(text)
    run("export_onnx", *EXPORT, "net.onnx", cwd=".")
    return net


def runtime_scores(path, feeds):
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    used = {entry.name for entry in session.get_inputs()}
    feeds = {name: value for name, value in feeds.items() if name in used}
    return dict(zip(names, session.run(names, feeds), strict=True))


def assert_close(got, expected):
    assert set(got) == set(expected)
    for name, value in expected.items():
        assert got[name].shape == value.shape
        np.testing.assert_allclose(got[name], value, rtol=1e-5, atol=1e-5 * np.abs(value).max())


def import_net(path="net.onnx"):
    run("import_onnx", path, "back.prototxt", "back.caffemodel", cwd=".")
    return caffe.Net("back.prototxt", "back.caffemodel", caffe.TEST)


def check_export(text):
    net = export(text)
    feeds = {name: net.blobs[name].data.copy() for name in net.inputs}
    expected = scores(net)
    assert_close(runtime_scores("net.onnx", feeds), expected)
    return feeds, expected


@pytest.mark.parametrize("text", BOTH_WAYS.values(), ids=BOTH_WAYS.keys())
def test_layers_are_written_and_read_back(work, text):
    feeds, expected = check_export(text)
    back = import_net()
    for name, value in feeds.items():
        back.blobs[name].data[...] = value
    assert_close(scores(back), expected)


@pytest.mark.parametrize("text", ONE_WAY.values(), ids=ONE_WAY.keys())
def test_layers_are_written(work, text):
    check_export(text)


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
def test_example_nets_are_written(work, path):
    check_export(deploy_form(path))


def test_what_has_no_form_is_named(work):
    random_net(image(CONV))
    pyramid = layer("SPP", "spp_param { pyramid_height: 2 }", "y", "f", "pyramid")
    pathlib.Path("net.prototxt").write_text(image(CONV, pyramid))
    output = run("export_onnx", *EXPORT, "out.onnx", cwd=".", code=1)
    assert "layer 'pyramid'" in output and "SPP has no ONNX form" in output
    assert not pathlib.Path("out.onnx").exists()


def save_model(nodes, constants=(), shape=("N", 3, 6, 6), outputs=("out",), opset=17):
    """Writes net.onnx, a model from "in" to `outputs` of unknown shapes."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "made",
        [value("in", onnx.TensorProto.FLOAT, shape)],
        [value(name, onnx.TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    onnx.save(model, "net.onnx")


def check_import(shape=(1, 3, 6, 6)):
    """What was saved must score the same once it is read."""
    x = np.random.default_rng(5).normal(size=shape).astype(np.float32)
    net = import_net()
    net.blobs["in"].data[...] = x
    session = onnxruntime.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
    expected = session.run(None, {"in": x})
    net.forward()
    names = [output.name for output in session.get_outputs()]
    assert_close(
        {name: net.blobs[name].data for name in names}, dict(zip(names, expected, strict=True))
    )


def random_array(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def test_shapes_computed_in_the_model(work):
    node = helper.make_node
    save_model(
        [
            node("Conv", ["in", "w"], ["conv"], pads=[1, 1, 1, 1], name="conv"),
            node("Shape", ["conv"], ["shape"]),
            node("Constant", [], ["zero"], value=numpy_helper.from_array(np.array(0))),
            node("Gather", ["shape", "zero"], ["batch"]),
            node("Unsqueeze", ["batch", "axis"], ["batches"]),
            node("Concat", ["batches", "rest"], ["sizes"], axis=0),
            node("Reshape", ["conv", "sizes"], ["flat"]),
            node("Gemm", ["flat", "matrix", "bias"], ["out"], alpha=0.5, beta=2.0),
        ],
        [
            ("w", random_array(4, 3, 3, 3)),
            ("axis", np.array([0])),
            ("rest", np.array([-1])),
            ("matrix", random_array(144, 5)),
            ("bias", random_array(5)),
        ],
    )
    check_import()


def test_arithmetic_with_constants_and_gates(work):
    node = helper.make_node
    save_model(
        [
            node("Add", ["in", "channels"], ["a"]),
            node("Mul", ["two", "a"], ["b"]),
            node("Sub", ["one", "b"], ["c"]),
            node("Div", ["c", "channels"], ["d"]),
            node("ReduceMean", ["d"], ["mean"], axes=[2, 3]),
            node("Sigmoid", ["mean"], ["gate"]),
            node("Mul", ["d", "gate"], ["e"]),
            node("Clip", ["e", "", "one"], ["f"]),
            node("MatMul", ["f", "matrix"], ["g"]),
            node("Split", ["g"], ["h", "i"], axis=3),
            node("Sub", ["h", "i"], ["j"]),
            node("Squeeze", ["mean", "axes"], ["k"]),
            node("Transpose", ["j"], ["out"], perm=[0, 2, 3, 1]),
            node("LogSoftmax", ["k"], ["other"]),
        ],
        [
            ("channels", random_array(3, 1, 1) + 3),
            ("two", np.float32(2)),
            ("one", np.array([1], np.float32)),
            ("matrix", random_array(6, 4)),
            ("axes", np.array([2, 3])),
        ],
        outputs=("out", "other"),
    )
    check_import()


@pytest.mark.parametrize(
    "node, words",
    [
        (dict(op_type="Conv", inputs=["in", "in"]), "must be a constant"),
        (dict(op_type="Conv", inputs=["in", "w"], pads=[1, 0, 0, 0]), "pads both sides alike"),
        (dict(op_type="Conv", inputs=["in", "w"], strides=[-1, 1]), "out of range"),
        (dict(op_type="Conv", inputs=["in", "small"]), "shape"),
        (dict(op_type="MaxPool", inputs=["in"], kernel_shape=[0, 2]), "above 0"),
        (dict(op_type="MaxPool", inputs=["in"], kernel_shape=[9, 9]), "larger"),
        (dict(op_type="Reshape", inputs=["in", "w"]), "must hold integers"),
        (dict(op_type="Softmax", inputs=["in"], axis=9), "axis"),
        (dict(op_type="Einsum", inputs=["in"], equation="nchw->n"), "no layer for operator Einsum"),
        (dict(op_type="Relu", inputs=["nowhere"]), "made by no node"),
    ],
    ids=lambda value: value["op_type"] if isinstance(value, dict) else value.replace(" ", "_"),
)
def test_what_cannot_be_read_is_named(work, node, words):
    made = helper.make_node(outputs=["out"], name="culprit", **node)
    save_model([made], [("w", random_array(2, 3, 3, 3)), ("small", random_array(2, 2, 3, 3))])
    output = run("import_onnx", "net.onnx", "n.prototxt", "n.caffemodel", cwd=".", code=1)
    assert "node 'culprit'" in output and words in output


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


def test_safetensors_agree_with_their_library(work):
    safetensors = pytest.importorskip("safetensors.numpy")
    net = random_net(image(CONV, layer("ReLU", "", "y", "y", "r"), layer("PReLU", "", "y", "z")))
    run("convert_weights", "net.caffemodel", "net.safetensors", cwd=".")
    read = safetensors.load_file("net.safetensors")
    assert sorted(read) == ["y.0", "y.1", "z.0"]
    for name in ("y", "z"):
        for i, blob in enumerate(net.params[name]):
            np.testing.assert_array_equal(read[f"{name}.{i}"], blob.data)
    safetensors.save_file({k: v * 2 for k, v in read.items()}, "twice.safetensors", {"by": "test"})
    run("convert_weights", "twice.safetensors", "twice.caffemodel.h5", cwd=".")
    run("convert_weights", "twice.caffemodel.h5", "twice.caffemodel", cwd=".")
    twice = caffe.Net("net.prototxt", "twice.caffemodel", caffe.TEST)
    for name in ("y", "z"):
        for mine, other in zip(net.params[name], twice.params[name], strict=True):
            np.testing.assert_array_equal(2 * mine.data, other.data)


ENTRY = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    "header, words",
    [
        (b"", "not a JSON object"),
        (b"{", "not a JSON object"),
        (b"[" * 100000, "not a JSON object"),
        ({"a.0": 3}, "no object"),
        ({"a": ENTRY}, "LAYER.INDEX"),
        ({"a.99999999": ENTRY}, "LAYER.INDEX"),
        ({"a.0": {**ENTRY, "dtype": "BF16"}}, "dtype"),
        ({"a.0": {**ENTRY, "shape": [1 << 62, 4]}}, "a.0"),
        ({"a.0": {**ENTRY, "shape": [-1]}}, "whole numbers"),
        ({"a.0": {**ENTRY, "data_offsets": [4, 8]}}, "data_offsets"),
        ({"a.0": {**ENTRY, "data_offsets": [4, 0]}}, "data_offsets"),
    ],
)
def test_bad_safetensors_are_refused(work, header, words):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    pathlib.Path("bad.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"1234")
    output = run("convert_weights", "bad.safetensors", "out.caffemodel", cwd=".", code=1)
    assert "bad.safetensors" in output and words in output
    pathlib.Path("bad.safetensors").write_bytes(struct.pack("<Q", 1 << 60))
    assert "header" in run("convert_weights", "bad.safetensors", "o.h5", cwd=".", code=1)
