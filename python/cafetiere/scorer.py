# SPDX-License-Identifier: Apache-2.0
"""Scorer: a trained net that scores tables in this process, without Spark."""

import ctypes
import json
import os
import pathlib
import threading

import numpy as np

from cafetiere import _arrow
from cafetiere._columns import is_pandas
from cafetiere._library import Handle, call, call_for_json


class Scorer:
    """A net with its weights, for rows of floats.

    net: path of a prototxt, of a training net or one that is deployed; weights: path of a
    caffemodel or its HDF5 form; output: the blob that is the score, by default the one that the net
    ends in; batch: rows computed at a time, 0 for the net's own; precision: what it computes in,
    "float32", "bf16" or "auto", which is bf16 where the processor has AMX. Convolutions may add in
    another order for another batch; with the batch and the precision of a CaffeModel, the scores
    have the bits of its transform.

    A row feeds the first top of the net's data layer (of several layers, that of the first with two
    tops), which scales and crops it as in training; other tops, such as a label, read zeros.
    Recurrent layers begin each score() with zeros. Threads that share a Scorer take turns.
    """

    def __init__(self, net, weights, output=None, batch=0, threads=1, precision="float32"):
        options = {
            "net": pathlib.Path(net).read_text(encoding="utf-8"),
            "weights": os.fspath(weights),
            "outputs": [output] if output else [],
            "batch": batch,
            "threads": threads,
            "precision": precision,
        }
        made = ctypes.c_void_p()
        call("cft_predictor_create", json.dumps(options).encode(), None, 0, ctypes.byref(made))
        self._handle = Handle(made, "cft_predictor_destroy")
        self._turn = threading.Lock()
        told = call_for_json("cft_predictor_describe", self._handle)
        outputs, self._batch = told["outputs"], told["batch"]
        if len(outputs) > 1:
            names = ", ".join(each["name"] for each in outputs)
            raise ValueError(f"the net ends in several blobs: output= one of {names}")
        self.output, self.shape = outputs[0]["name"], tuple(outputs[0]["shape"])

    def score(self, table, column=None):
        """The scores of a table's rows, an array of float32 (rows, ..).

        table: an array (rows, ..), an object with DLPack (a tensor of PyTorch or JAX), a DataFrame
        or a Series of pandas, or what has Arrow's C data interface (tables and batches of PyArrow,
        Polars, DuckDB), whose column of lists `column` names. Arrow's memory, and arrays of float32
        whose rows lie one after another, are read where they lie; others are converted first.
        """
        with self._turn:
            call("cft_predictor_reset", self._handle)
            if is_pandas(table):
                return self._of_array(_pandas_rows(table, column))
            if _arrow.is_arrow(table):
                blocks = _whole_batches(_arrow.blocks(table, column), self._batch)
                scores = [self._of_array(rows) for rows in blocks]
                return np.concatenate(scores) if scores else np.empty((0, *self.shape), np.float32)
            if not isinstance(table, np.ndarray) and hasattr(table, "__dlpack__"):
                table = np.from_dlpack(table)
            return self._of_array(table)

    def _of_array(self, rows):
        if np.ma.is_masked(rows) or np.iscomplexobj(rows):
            raise TypeError("a masked or a complex number is no float: fill or convert it first")
        rows = np.ascontiguousarray(rows, np.float32)
        if rows.ndim < 2:
            raise ValueError(f"rows have an axis of their own: shape (rows, ..), not {rows.shape}")
        count = len(rows)
        scores = np.empty((count, *self.shape), np.float32)
        if count:
            call(
                "cft_predictor_floats",
                self._handle,
                count,
                _pointers(rows),
                _numbers(rows.size // count),
                1,
                _pointers(scores),
                _numbers(scores.size),
                1,
            )
        return scores


def _whole_batches(blocks, batch):
    """The blocks cut where batches end, so that scores do not depend on how rows are chunked."""
    rest = np.empty((0, 0), np.float32)
    for block in blocks:
        if not len(block):
            continue
        if len(rest):
            missing = batch - len(rest)
            rest, block = np.concatenate([rest, block[:missing]]), block[missing:]
            if len(rest) < batch:
                continue
            yield rest
        whole = len(block) // batch * batch
        if whole:
            yield block[:whole]
        rest = block[whole:].copy()  # a block's memory goes with the next one
    if len(rest):
        yield rest


def _pointers(array):
    return (ctypes.c_void_p * 1)(array.ctypes.data)


def _numbers(number):
    return (ctypes.c_uint64 * 1)(number)


def _pandas_rows(table, column):
    """The rows of a DataFrame of numbers, or of a column of arrays."""
    if table.ndim == 2 and column is None:
        return table.to_numpy(np.float32)
    cells = (table if table.ndim == 1 else table[column]).to_list()
    return np.stack(cells) if cells else np.empty((0, 0), np.float32)
