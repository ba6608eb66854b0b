# SPDX-License-Identifier: Apache-2.0
"""Nets and weights as ONNX files, and back."""

import ctypes
import json
import os
import pathlib

from cafetiere._library import Error, call, call_for_bytes, library


def import_onnx(path, batch=1):
    """Reads an ONNX model: the text of a net, and its weights as a caffemodel's bytes.

    `batch` is the first size of inputs that leave it open. The weights must be inside the file, of
    opset 9 or later. Raises cafetiere.Error where the engine has no layer for an operator.
    """
    file = pathlib.Path(path).read_bytes()
    text, weights, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    out = (ctypes.byref(text), ctypes.byref(weights), ctypes.byref(size))
    try:
        call("cft_onnx_import", file, len(file), batch, *out)
    except Error as e:
        raise Error(f"{os.fspath(path)}: {e}", e.code) from None
    try:
        return ctypes.string_at(text).decode(), ctypes.string_at(weights, size.value)
    finally:
        library().cft_free(text)
        library().cft_free(weights)


def export_onnx(net, weights, path, shapes=None):
    """Writes a net in its deploy form, with its weights, as the ONNX model `path`.

    `net`: a prototxt's text or a NetSpec; `weights`: a caffemodel's path or bytes; `shapes`: of
    tops whose data is not at hand, such as {"data": [1, 3, 227, 227]}. Raises ValueError where
    the net is a path, and cafetiere.Error where ONNX cannot say what a layer does.
    """
    text = str(net.to_proto()) if hasattr(net, "to_proto") else net
    if isinstance(text, os.PathLike) or "{" not in text:
        raise ValueError(
            f"the net {os.fspath(text)!r} is no prototxt's text: if it is a path, give"
            " pathlib.Path(path).read_text()"
        )
    if isinstance(weights, (str, os.PathLike)):
        weights = pathlib.Path(weights).read_bytes()
    options = json.dumps({"net": text, "shapes": shapes or {}}).encode()
    file = call_for_bytes("cft_onnx_export", options, weights, len(weights))
    pathlib.Path(path).write_bytes(file)
