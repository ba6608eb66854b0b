# SPDX-License-Identifier: Apache-2.0
"""ONNX models in which an operator's own rule decides: the same numbers are read, or nothing is."""

import numpy as np
import pytest
from onnx_nets import check_import, integers, onnx, random_array, save_model
from program import needs_the_program, run

pytestmark = needs_the_program

node = onnx.helper.make_node
INTEGERS, FLOATS, BOOL = (onnx.TensorProto.INT64, onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL)


def check_refusal(words):
    output = run("import_onnx", "net.onnx", "n.prototxt", "n.caffemodel", cwd=".", code=1)
    assert "node 'culprit'" in output and words in output


# Each makes "more" of "in", (N, 4, 3), with an axis or two in front.
MORE_AXES = {
    "a sum": node("Add", ["in", "c"], ["more"]),
    "a product": node("Mul", ["c", "in"], ["more"]),
    "a number": node("Add", ["in", "one"], ["more"]),
    "a number in front": node("Sub", ["one", "in"], ["more"]),
    "a number over": node("Div", ["one", "in"], ["more"]),
    "a power": node("Pow", ["in", "two"], ["more"]),
    "a comparison": node("Greater", ["in", "one"], ["above"]),
}


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("made", MORE_AXES.values(), ids=MORE_AXES.keys())
def test_a_constant_of_more_axes_gives_the_result_as_many(work, made, batch):
    nodes = [made]
    if made.op_type == "Greater":
        nodes.append(node("Cast", ["above"], ["more"], to=FLOATS))
    nodes += [
        node("ReduceSum", ["more", "last"], ["sum"], keepdims=0),
        node("Softmax", ["more"], ["out"], axis=2),
    ]
    constants = [
        ("c", random_array(1, 1, 4, 3)),
        ("one", np.full((1, 1, 1, 1), 1.5, np.float32)),
        ("two", np.full((1, 1, 1, 1), 2, np.float32)),
        ("last", integers(-1)),
    ]
    save_model(nodes, constants, shape=("N", 4, 3), outputs=("sum", "out"))
    check_import((batch, 4, 3))


PAIRS = {
    "as large": ("Add", (1, 4, 3), (4, 3)),
    "smaller": ("Mul", (1, 1, 3), (4, 3)),
    "one number": ("Sub", (1, 1, 1), (4, 3)),
    "of two more axes": ("Div", (1, 1, 4, 1), (4, 3)),
    "first of a batch": ("Add", (4, 3), (1, 2, 4, 3)),
}


@pytest.mark.parametrize("op, a, b", PAIRS.values(), ids=PAIRS.keys())
def test_of_two_values_the_one_of_more_axes_says_how_many(work, op, a, b):
    sizes = [int(np.prod(shape)) for shape in (a, b)]
    nodes = [
        node("Split", ["in", "sizes"], ["first", "second"], axis=1),
        node("Reshape", ["first", "a"], ["x"]),
        node("Reshape", ["second", "b"], ["y"]),
        node(op, ["x", "y"], ["both"]),
        node("Softmax", ["both"], ["out"], axis=1),
        node(op, ["y", "x"], ["turned"]),
    ]
    constants = [("sizes", integers(*sizes)), ("a", integers(*a)), ("b", integers(*b))]
    save_model(nodes, constants, shape=(1, sum(sizes)), outputs=("out", "turned"))
    check_import((1, sum(sizes)))


REFUSED_OF_INTEGERS = {
    "the quotient of integers": [node("Div", ["in", "two"], ["out"], name="culprit")],
    "the quotient of an integer": [node("Div", ["two", "in"], ["out"], name="culprit")],
    "a quotient of what integers made": [
        node("Add", ["in", "two"], ["more"]),
        node("Reshape", ["more", "flat"], ["list"]),
        node("Div", ["list", "two"], ["out"], name="culprit"),
    ],
    "the quotient of a place": [
        node("Cast", ["in"], ["numbers"], to=FLOATS),
        node("ArgMax", ["numbers"], ["place"], axis=1),
        node("Div", ["place", "two"], ["out"], name="culprit"),
    ],
    "the mean of integers": [
        node("ReduceMean", ["in"], ["out"], name="culprit", axes=[1]),
    ],
    "a power of integers": [node("Pow", ["in", "half"], ["out"], name="culprit")],
}


@pytest.mark.parametrize("nodes", REFUSED_OF_INTEGERS.values(), ids=REFUSED_OF_INTEGERS.keys())
def test_what_cuts_integers_is_refused(work, nodes):
    constants = [("two", integers(2)), ("flat", integers(-1)), ("half", np.float32(0.5))]
    save_model(nodes, constants, shape=("N", 4), kind=INTEGERS, made=INTEGERS)
    check_refusal("cuts")


def test_integers_are_counted_with_and_cast(work):
    nodes = [
        node("Add", ["in", "two"], ["more"]),
        node("Mul", ["more", "more"], ["square"]),
        node("Cast", ["square"], ["wide"], to=INTEGERS),
        node("Cast", ["wide"], ["numbers"], to=FLOATS),
        node("Div", ["numbers", "half"], ["out"]),
    ]
    save_model(
        nodes,
        [("two", integers(2)), ("half", np.float32(0.7))],
        shape=("N", 4),
        kind=INTEGERS,
    )
    check_import(x=integers(3, -5, 7, 0).reshape(1, 4))


def test_a_place_is_a_row_and_its_number_may_be_divided(work):
    nodes = [
        node("ArgMax", ["in"], ["place"], axis=1, keepdims=0),
        node("Gather", ["table", "place"], ["row"]),
        node("Div", ["row", "two"], ["out"]),
    ]
    save_model(nodes, [("table", random_array(4, 3)), ("two", np.float32(2))], shape=("N", 4))
    check_import((2, 4))


def test_numbers_of_a_matrix_of_integers_are_not_those_of_a_list(work):
    nodes = [
        node("Gather", ["matrix", "one"], ["sizes"], name="culprit"),
        node("Reshape", ["in", "sizes"], ["out"]),
    ]
    save_model(nodes, [("matrix", integers(1, 2, -1, 3).reshape(2, 2)), ("one", integers(1)[0])])
    check_refusal("a list")


RESIZED = dict(name="culprit", mode="linear")


@pytest.mark.parametrize(
    "attributes, words",
    [
        (dict(keep_aspect_ratio_policy="not_larger"), "keep_aspect_ratio_policy"),
        (dict(keep_aspect_ratio_policy="stretch"), ""),
        (dict(axes=[0, 1, 3, 2]), "axes"),
        (dict(axes=[0, 1, 2, 3]), ""),
    ],
)
def test_a_resize_to_other_sizes_than_it_says_is_refused(work, attributes, words):
    resize = node("Resize", ["in", "", "", "sizes"], ["out"], **RESIZED, **attributes)
    save_model([resize], [("sizes", integers(1, 3, 9, 12))], opset=18)
    if words:
        check_refusal(words)
    else:
        check_import()


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("by_node", [False, True])
def test_a_dropout_that_drops_is_refused(work, training, by_node):
    constants = [("half", np.float32(0.5)), ("training", np.array(training))]
    nodes = [node("Dropout", ["in", "half", "training"], ["out"], name="culprit")]
    if by_node:
        said = onnx.helper.make_tensor("said", BOOL, [], [training])
        nodes.insert(0, node("Constant", [], ["training"], value=said))
        constants.pop()
    save_model(nodes, constants)
    if training:
        check_refusal("training_mode")
    else:
        check_import()


def test_selu_and_regions(work):
    nodes = [
        node("Selu", ["in"], ["x"]),
        node("Selu", ["x"], ["y"], alpha=1.5, gamma=0.5),
        node("Reshape", ["in", "rows"], ["few"]),
        node("Slice", ["few", "begin", "end", "axis"], ["numbers"]),
        node("Mul", ["numbers", "none"], ["zeros"]),
        node("Add", ["zeros", "region"], ["regions"]),
        node("MaxRoiPool", ["y", "regions"], ["out"], pooled_shape=[2, 3], spatial_scale=0.5),
    ]
    constants = [
        ("rows", integers(-1, 6)),
        ("begin", integers(0)),
        ("end", integers(5)),
        ("axis", integers(1)),
        ("none", np.float32(0)),
        ("region", np.array([0, 1, 2, 9, 8], np.float32)),
    ]
    save_model(nodes, constants, shape=(1, 3, 6, 6))
    check_import()


@pytest.mark.parametrize("sizes", [[2], [0, 3], [2, 2**40]])
def test_regions_of_no_size_are_refused(work, sizes):
    pool = node("MaxRoiPool", ["in", "in"], ["out"], name="culprit", pooled_shape=sizes)
    save_model([pool])
    check_refusal("pooled_shape")
