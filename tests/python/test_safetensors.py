# SPDX-License-Identifier: Apache-2.0
"""safetensors files: weights in a form that other programs read and write."""

import json
import pathlib
import struct

import numpy as np
import pytest
from built import caffe
from onnx_nets import CONV, image, layer, random_net
from program import needs_the_program, run

pytestmark = needs_the_program


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
