# SPDX-License-Identifier: Apache-2.0
"""Nets for the tests of ONNX, and what runs them here and elsewhere."""

import pathlib

import numpy as np
import pytest
from built import caffe
from program import run

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def layer(kind, parameters="", bottoms="x", tops="y", name=None):
    ends = "".join(f' bottom: "{b}"' for b in bottoms.split())
    ends += "".join(f' top: "{t}"' for t in tops.split())
    return f'layer {{ name: "{name or tops.split()[0]}" type: "{kind}"{ends} {parameters} }}\n'


def inputs(*shapes):
    text = ""
    for name, shape in zip("xyzhc", shapes, strict=False):
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


def recurrent(kind, bottoms, tops, options=""):
    return layer(kind, f"recurrent_param {{ num_output: 5 {options} {GAUSS} }}", bottoms, tops)


# Every type of layer that has an ONNX form, and the options that change the form.
LAYERS = {
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
    "weights of another, in a shape of its own": inputs((2, 4))
    + layer(
        "InnerProduct",
        f'param {{ name: "w" }} inner_product_param {{ num_output: 6 bias_term: false {GAUSS} }}',
        tops="c",
    )
    + layer(
        "InnerProduct",
        'param { name: "w" share_mode: PERMISSIVE }'
        " inner_product_param { num_output: 4 bias_term: false }",
        "c",
    ),
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
    "in place on the input": image(layer("ReLU", "", "x", "x", "r"), layer("TanH", "", "x", "y")),
    "dropout at the end": image(CONV, layer("Dropout", "", "y", "y", "d")),
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
    "lstm": inputs((4, 2, 3), (4, 2)) + recurrent("LSTM", "x y", "t"),
    "lstm of one step": inputs((1, 2, 3), (1, 2)) + recurrent("LSTM", "x y", "t"),
    "lstm with a static input and open states": inputs(
        (4, 2, 3), (4, 2), (2, 7), (1, 2, 5), (1, 2, 5)
    )
    + recurrent("LSTM", "x y z h c", "t u v", "expose_hidden: true"),
    "two lstms": inputs((4, 2, 3), (4, 2))
    + recurrent("LSTM", "x y", "s")
    + recurrent("LSTM", "s y", "t"),
    "rnn": inputs((4, 2, 3), (4, 2)) + recurrent("RNN", "x y", "t"),
    "rnn with an open state": inputs((4, 2, 3), (4, 2), (1, 2, 5))
    + recurrent("RNN", "x y z", "t u", "expose_hidden: true"),
    "spatial pyramid": one("SPP", "spp_param { pyramid_height: 3 }"),
    "spatial pyramid of averages": one("SPP", "spp_param { pyramid_height: 2 pool: AVE }"),
    "spatial pyramid of one level": one("SPP", "spp_param { pyramid_height: 1 }"),
    "convolution of three axes": one(
        "Convolution",
        f"convolution_param {{ num_output: 4 kernel_size: 2 stride: 2 pad: 1 {GAUSS} }}",
        shape=(2, 3, 4, 5, 6),
    ),
    "convolution of two blobs": inputs((2, 3, 5, 5), (2, 3, 5, 5))
    + layer(
        "Convolution", f"convolution_param {{ num_output: 4 kernel_size: 2 {GAUSS} }}", "x y", "s t"
    ),
    "global maximum": one("Pooling", POOL.format("MAX", "global_pooling: true")),
    "scale by one number": one("Scale", "scale_param { num_axes: 0 }"),
    "scale by a blob, and a bias": inputs((2, 3, 4), (3, 4))
    + layer("Scale", "scale_param { axis: 1 bias_term: true }", "x y", "t"),
    "bias by a blob": inputs((2, 3, 4), (3,)) + layer("Bias", "bias_param { axis: 1 }", "x y", "t"),
    "layer norm without a scale": one(
        "LayerNorm", "layer_norm_param { axis: 1 scale_bias: false }"
    ),
    "softmax over pixels": one("Softmax", "softmax_param { axis: 2 }"),
    "sum of three": inputs((2, 3), (2, 3), (2, 3)) + layer("Eltwise", "", "x y z", "t"),
    "twice the same": image(layer("Eltwise", "", "x x", "t")),
    "slice into equal parts": image(layer("Slice", "slice_param { axis: 1 }", "x", "a b c")),
    "crop of nothing": inputs((2, 5, 6, 7), (2, 5, 6, 7)) + layer("Crop", "", "x y", "t"),
    "embed without a bias": inputs((4,))
    + layer("Embed", f"embed_param {{ num_output: 5 input_dim: 3 bias_term: false {GAUSS} }}"),
    "argmax of indices": one("ArgMax", "argmax_param { top_k: 2 }"),
    "resize of five axes": one(
        "Interp", "interp_param { height: 3 width: 4 align_corners: false }", shape=(2, 2, 3, 5, 6)
    ),
    "prelu of rows": one("PReLU", 'prelu_param { filler { type: "uniform" } }', shape=(4, 5)),
    "absolute sum": one("Reduction", "reduction_param { operation: ASUM axis: 1 }"),
    "batch reindex": inputs((4, 3), (6,)) + layer("BatchReindex", "", "x y", "t"),
    "silence": image(layer("Slice", "slice_param { axis: 1 slice_point: 2 }", "x", "a b"))
    + layer("Silence", "", "b", "", "quiet"),
}


# Layers of forks.
FORKS = {
    "axpy": inputs((2, 3, 1, 1), (2, 3, 4, 5), (2, 3, 4, 5)) + layer("Axpy", "", "x y z", "t"),
    "axpy of two axes": inputs((2, 3), (2, 3, 4, 5), (2, 3, 4, 5))
    + layer("Axpy", "", "x y z", "t"),
    "bn": one("BN"),
    "bn of scale and shift": one("BN", "bn_param { bn_mode: INFERENCE }"),
    "bn of scale and shift of rows": one("BN", "bn_param { bn_mode: INFERENCE }", shape=(4, 5)),
    "bn of scale and shift of five axes": one(
        "BN", "bn_param { bn_mode: INFERENCE }", shape=(2, 3, 2, 3, 2)
    ),
    "batch norm with a scale": one("BatchNorm", "batch_norm_param { scale_bias: true }"),
    "depthwise": one(
        "ConvolutionDepthwise", f"convolution_param {{ kernel_size: 3 stride: 2 {GAUSS} }}"
    ),
    "unscaled dropout": one("Dropout", "dropout_param { scale_train: false }"),
    "normalize": one("Normalize"),
    "normalize pixels": one(
        "Normalize", "norm_param { across_spatial: false channel_shared: false }"
    ),
    "normalize pixels of rows": one(
        "Normalize", "norm_param { across_spatial: false channel_shared: false }", shape=(4, 5)
    ),
    "normalize without parameters": one("Normalize", "normalize_param { }"),
    "normalize by the absolute sum": image(
        layer("Normalize", 'normalize_param { normalize_type: "L1" }', tops="y norm")
    ),
    "relu 6 with a slope": one("ReLU6", "relu6_param { negative_slope: 0.2 }"),
    "regions": inputs((2, 3, 6, 7), (4, 5))
    + layer(
        "ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 3 spatial_scale: 3 }", "x y", "t"
    ),
    "selu": one("SeLu", "selu_param { alpha: 1.5 }"),
    "selu dropout": one("SeLuDropout"),
    "shuffled channels": one("ShuffleChannel", "shuffle_channel_param { group: 3 }"),
    "shrunk": one("Interp", "interp_param { shrink_factor: 2 }"),
    "repeated pixels": one("Upsample", "upsample_param { scale: 2 }"),
}


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
            for blob in blobs[3:]:
                blob.data[...] = random.normal(size=blob.data.shape)
        elif kind == "BN":
            for blob in blobs:
                blob.data[...] = random.uniform(1, 3, size=blob.data.shape)
        elif kind in ("Scale", "LayerNorm", "GroupNorm", "Normalize"):
            for blob in blobs:
                blob.data[...] = random.normal(size=blob.data.shape)
    net.save("net.caffemodel")
    for name in net.inputs:
        blob = net.blobs[name].data
        indices = "Embed" in text or (
            name == "y" and any(of in text for of in ("recurrent_param", "Reindex", "ROIPooling"))
        )
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


def save_model(
    nodes,
    constants=(),
    shape=("N", 3, 6, 6),
    outputs=("out",),
    opset=17,
    kind=onnx.TensorProto.FLOAT,
    made=onnx.TensorProto.FLOAT,
):
    """Writes net.onnx, a model from "in" of a kind to `outputs` of unknown shapes."""
    helper, value = onnx.helper, onnx.helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "made",
        [value("in", kind, shape)],
        [value(name, made, None) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in constants],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    onnx.save(model, "net.onnx")


def check_import(shape=(1, 3, 6, 6), x=None):
    """What was saved must score the same once it is read, with a batch of 1, and takes `shape`."""
    if x is None:
        x = np.random.default_rng(5).normal(size=shape).astype(np.float32)
    net = import_net()
    net.blobs["in"].reshape(*x.shape)
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


def integers(*values):
    return np.array(values, np.int64)
