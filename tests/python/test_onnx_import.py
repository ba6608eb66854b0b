# SPDX-License-Identifier: Apache-2.0
"""ONNX models as other programs write them, read as nets."""

import numpy as np
import pytest
from onnx_nets import (
    check_import,
    import_net,
    integers,
    onnx,
    onnxruntime,
    random_array,
    save_model,
)
from program import needs_the_program, run

helper, numpy_helper = onnx.helper, onnx.numpy_helper

pytestmark = needs_the_program


node = helper.make_node


def test_shapes_computed_in_the_model(work):
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


SLICES = {
    "channels": ([1], [3], [1]),
    "from an end": ([0, -4], [5, -1], [1, 3]),
    "beyond": ([2, -99], [2**62, 99], [2, 1]),
    "all": ([0], [2**62], [3]),
    "the batch": ([1], [2], [0]),
}


@pytest.mark.parametrize("starts, ends, axes", SLICES.values(), ids=SLICES.keys())
def test_slices(work, starts, ends, axes):
    save_model(
        [
            node("Slice", ["in", "starts", "ends", "axes", "steps"], ["part"]),
            node("Relu", ["part"], ["out"]),
        ],
        [
            ("starts", integers(*starts)),
            ("ends", integers(*ends)),
            ("axes", integers(*axes)),
            ("steps", integers(*[1 for _ in axes])),
        ],
        shape=(3, 3, 6, 6),
    )
    check_import((3, 3, 6, 6))


def test_a_slice_of_opset_9_and_one_of_a_shape(work):
    save_model(
        [
            node("Slice", ["in"], ["part"], starts=[1], ends=[6], axes=[2]),
            node("Shape", ["part"], ["sizes"]),
            node("Slice", ["sizes"], ["front"], starts=[0], ends=[2]),
            node("Concat", ["front", "rest"], ["to"], axis=0),
            node("Reshape", ["part", "to"], ["out"]),
        ],
        [("rest", integers(-1))],
        opset=9,
    )
    check_import()


def test_tiles_and_largest_values(work):
    save_model(
        [
            node("Tile", ["in", "times"], ["wide"]),
            node("TopK", ["wide", "k"], ["best", "where"], axis=1),
            node("TopK", ["in", "k"], ["largest", "unused"], axis=-1),
            node("ArgMax", ["in"], ["class"], axis=1, keepdims=0),
            node("ArgMax", ["in"], ["column"], axis=3),
            node("Cast", ["where"], ["places"], to=1),
            node("Cast", ["class"], ["classes"], to=1),
            node("Cast", ["column"], ["columns"], to=1),
        ],
        [("times", integers(1, 1, 2, 3)), ("k", integers(2))],
        outputs=("best", "places", "largest", "classes", "columns"),
    )
    check_import()


@pytest.mark.parametrize("pads_count", [0, 1])
def test_averages_over_other_counts_than_a_layer_has(work, pads_count):
    save_model(
        [
            node(
                "AveragePool",
                ["in"],
                ["out"],
                kernel_shape=[3, 3],
                strides=[2, 2],
                pads=[1, 1, 2, 2],
                count_include_pad=pads_count,
            )
        ]
    )
    check_import()


def test_a_norm_written_out(work):
    save_model(
        [
            node("ReduceMean", ["in"], ["mean"], axes=[-1]),
            node("Sub", ["in", "mean"], ["centred"]),
            node("Pow", ["centred", "two"], ["square"]),
            node("ReduceMean", ["square"], ["variance"], axes=[-1]),
            node("Add", ["variance", "eps"], ["more"]),
            node("Sqrt", ["more"], ["deviation"]),
            node("Div", ["centred", "deviation"], ["normal"]),
            node("Div", ["normal", "in"], ["out"]),
        ],
        [("two", np.float32(2)), ("eps", np.float32(1e-5))],
    )
    check_import()


GATES = {
    "squeeze and excitation": [
        node("GlobalAveragePool", ["in"], ["mean"]),
        node("Conv", ["mean", "narrow"], ["few"]),
        node("Relu", ["few"], ["active"]),
        node("Conv", ["active", "wide"], ["many"]),
        node("Sigmoid", ["many"], ["gate"]),
        node("Mul", ["in", "gate"], ["out"]),
    ],
    "means of channels": [
        node("ReduceMean", ["in"], ["mean"], axes=[2, 3]),
        node("Sub", ["in", "mean"], ["out"]),
    ],
    "means of rows": [
        node("ReduceMean", ["in"], ["mean"], axes=[3]),
        node("Sub", ["in", "mean"], ["out"]),
    ],
    "means of images": [
        node("ReduceMean", ["in"], ["mean"], axes=[1, 2, 3]),
        node("Div", ["in", "mean"], ["out"]),
    ],
}


@pytest.mark.parametrize("nodes", GATES.values(), ids=GATES.keys())
def test_the_batch_may_change_where_two_values_meet(work, nodes):
    save_model(nodes, [("narrow", random_array(2, 3, 1, 1)), ("wide", random_array(3, 2, 1, 1))])
    check_import((3, 3, 6, 6))


def test_a_map_without_channels_gates_one_image(work):
    nodes = [
        node("Conv", ["in", "w"], ["map"], pads=[1, 1, 1, 1]),
        node("Mul", ["in", "map"], ["out"]),
    ]
    save_model(nodes, [("w", random_array(1, 3, 3, 3))])
    check_import()


@pytest.mark.parametrize("scale", [0.7, 1.5, 2, 0.3])
@pytest.mark.parametrize("where", ["align_corners", "half_pixel"])
def test_a_resize_by_scales(work, scale, where):
    resize = node(
        "Resize",
        ["in", "", "scales"],
        ["out"],
        mode="linear",
        coordinate_transformation_mode=where,
    )
    scales = np.array([1, 1, scale, scale], np.float32)
    save_model([resize], [("scales", scales)], shape=("N", 3, 10, 20))
    check_import((2, 3, 10, 20))


@pytest.mark.parametrize("reduction", ["ReduceSum", "ReduceMean"])
def test_a_reduction_of_no_axes_may_change_nothing(work, reduction):
    nodes = [
        node("Relu", ["in"], ["positive"]),
        node(reduction, ["positive"], ["same"], noop_with_empty_axes=1),
        node("Neg", ["same"], ["out"]),
    ]
    save_model(nodes, opset=18)
    check_import()


UNSAID = {
    "antialias has no layer": [
        node("Resize", ["in", "", "", "sizes"], ["out"], name="culprit", mode="linear", antialias=1)
    ],
    "a cast to integers has no layer": [
        node("Cast", ["in"], ["whole"], name="culprit", to=7),
        node("Cast", ["whole"], ["out"], to=1),
    ],
}


@pytest.mark.parametrize("words", UNSAID)
def test_what_would_be_another_number_is_refused(work, words):
    sizes = ("sizes", np.array([1, 3, 3, 3], np.int64))
    save_model(UNSAID[words], [sizes], opset=18)
    output = run("import_onnx", "net.onnx", "n.prototxt", "n.caffemodel", cwd=".", code=1)
    assert "node 'culprit'" in output and words in output


RESIZES = {
    "linear": dict(mode="linear", coordinate_transformation_mode="half_pixel"),
    "nearest": dict(
        mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    ),
    "corners": dict(mode="linear", coordinate_transformation_mode="align_corners"),
}


@pytest.mark.parametrize("mode", RESIZES)
def test_scales_that_give_no_whole_sizes_need_corners(work, mode):
    resize = node("Resize", ["in", "", "scales"], ["out"], name="culprit", **RESIZES[mode])
    save_model([resize], [("scales", np.array([1, 1, 1.5, 1.5], np.float32))], shape=(1, 3, 5, 5))
    if mode == "corners":
        check_import((1, 3, 5, 5))
        return
    output = run("import_onnx", "net.onnx", "n.prototxt", "n.caffemodel", cwd=".", code=1)
    assert "node 'culprit'" in output and "with sizes in place of scales" in output


def test_an_average_of_more_windows_than_memory_holds_is_refused(work):
    pool = node(
        "AveragePool", ["in"], ["out"], name="culprit", kernel_shape=[3, 3], pads=[1, 1, 1, 1]
    )
    save_model([pool], shape=(1, 1, 40000, 40000))
    output = run("import_onnx", "net.onnx", "n.prototxt", "n.caffemodel", cwd=".", code=1)
    assert "node 'culprit'" in output and "40000 x 40000 windows" in output


def test_a_log_softmax_of_scores_far_apart(work):
    save_model([node("LogSoftmax", ["in"], ["out"])], shape=("N", 4))
    x = np.array([[0, 200, 0, 0], [-30, 0, 30, 20]], np.float32)
    session = onnxruntime.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
    expected = session.run(None, {"in": x})[0]
    assert expected.min() == -200
    net = import_net()
    net.blobs["in"].reshape(*x.shape)
    net.blobs["in"].data[...] = x
    net.forward()
    smallest = np.log(np.finfo(np.float32).tiny)
    np.testing.assert_allclose(net.blobs["out"].data, np.maximum(expected, smallest), atol=1e-4)


def test_thousands_of_nodes_of_one_name(work):
    count = 3000
    save_model(
        [node("Relu", [f"v{i}" if i else "in"], [f"v{i + 1}"], name="same") for i in range(count)],
        outputs=(f"v{count}",),
    )
    net = import_net()
    names = [name for name in net._layer_names if name.startswith("same")]
    assert len(names) == len(set(names)) == count


def test_a_name_made_for_a_layer_is_none_of_the_models(work):
    save_model(
        [
            node("LogSoftmax", ["in"], ["out"]),
            node("Relu", ["out"], ["out_inner"]),
        ],
        outputs=("out", "out_inner"),
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
        (dict(op_type="MatMul", inputs=["in", "in"]), "must be a constant"),
        (dict(op_type="Slice", inputs=["in"], starts=[4], ends=[2]), "nothing is left"),
        (dict(op_type="Greater", inputs=["in", "w"]), "one number"),
    ],
    ids=lambda value: value["op_type"] if isinstance(value, dict) else value.replace(" ", "_"),
)
def test_what_cannot_be_read_is_named(work, node, words):
    made = helper.make_node(outputs=["out"], name="culprit", **node)
    save_model([made], [("w", random_array(2, 3, 3, 3)), ("small", random_array(2, 2, 3, 3))])
    output = run("import_onnx", "net.onnx", "n.prototxt", "n.caffemodel", cwd=".", code=1)
    assert "node 'culprit'" in output and words in output
