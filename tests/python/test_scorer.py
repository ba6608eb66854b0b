# SPDX-License-Identifier: Apache-2.0
"""Tables of all kinds are scored without Spark, with the same bytes."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from built import caffe

ROWS, INPUTS = 1000, 12
NET = """
layer { name: "in" type: "MemoryData" top: "data" top: "label" transform_param { scale: 0.5 }
  memory_data_param { batch_size: 32 channels: 3 height: 2 width: 2 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 5 kernel_size: 2 weight_filler { type: "xavier" } } }
layer { name: "score" type: "InnerProduct" bottom: "conv" top: "score"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Paths of a net and of its weights."""
    folder = tmp_path_factory.mktemp("scorer")
    net, weights = folder / "net.prototxt", folder / "net.caffemodel"
    net.write_text(NET)
    caffe.set_random_seed(5)
    caffe.Net(str(net), caffe.TEST).save(str(weights))
    return net, weights


@pytest.fixture(scope="module")
def scorer(files):
    return caffe.Scorer(*files)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(1).standard_normal((ROWS, INPUTS), np.float32)


@pytest.fixture(scope="module")
def expected(files, rows):
    """What the net gives layer by layer, which need not be the same to the last bit."""
    net = caffe.Net(str(files[0]), str(files[1]), caffe.TEST)
    scores = []
    for first in range(0, ROWS, 32):
        batch = np.zeros((32, INPUTS), np.float32)
        part = rows[first : first + 32]
        batch[: len(part)] = part
        net.blobs["data"].data[...] = 0.5 * batch.reshape(net.blobs["data"].data.shape)
        net.forward(start="conv", end="score")
        scores.append(net.blobs["score"].data[: len(part)].copy())
    return np.concatenate(scores)


def lists(rows, kind=None):
    return pa.array(list(rows), kind or pa.list_(pa.float32()))


def tables(rows):
    """The same rows in all forms."""
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), INPUTS)
    table = pa.table({"id": np.arange(ROWS), "features": fixed})
    chunks = pa.chunked_array([lists(rows[:7]), lists(rows[7:7]), lists(rows[7:])])
    behind = pa.concat_arrays([lists(rows[:3]), lists(rows)]).slice(3)
    return {
        "float32": (rows,),
        "float64": (rows.astype(np.float64),),
        "images": (rows.reshape(ROWS, 3, 2, 2),),
        "columns first": (np.asfortranarray(rows),),
        "lists": (rows.tolist(),),
        "DLPack": (OnlyDlpack(rows),),
        "DataFrame": (pd.DataFrame(rows),),
        "Series": (pd.Series(list(rows)),),
        "column of a DataFrame": (pd.DataFrame({"id": 1, "features": list(rows)}), "features"),
        "fixed lists": (fixed,),
        "slice of fixed lists": (pa.concat_arrays([fixed[:5], fixed]).slice(5),),
        "table": (table, "features"),
        "batch": (table.to_batches()[0], "features"),
        "table of one column": (table.select(["features"]),),
        "slice of a batch": (pa.concat_tables([table[:9], table]).combine_chunks()[9:], "features"),
        "chunks": (chunks,),
        "large lists": (lists(rows, pa.large_list(pa.float32())),),
        "slice of lists": (behind,),
    }


class OnlyDlpack:
    """What offers nothing but DLPack."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_all_forms_have_the_same_scores(scorer, rows, expected):
    first = scorer.score(rows)
    np.testing.assert_allclose(first, expected, rtol=1e-5, atol=1e-6)
    for name, table in tables(rows).items():
        scores = scorer.score(*table)
        assert scores.dtype == np.float32 and scores.tobytes() == first.tobytes(), name


def test_one_by_one_they_are_those_of_their_batch(files, rows):
    scorer = caffe.Scorer(*files, output="score", batch=1)
    scores = np.concatenate([scorer.score(row[None]) for row in rows])
    assert scores.tobytes() == scorer.score(rows).tobytes()
    assert (scorer.output, scorer.shape) == ("score", (4,))


def test_in_bfloat16_they_are_near(files, rows, scorer):
    wide = scorer.score(rows)
    near = caffe.Scorer(*files, precision="bf16").score(rows)
    assert near.tobytes() != wide.tobytes()
    np.testing.assert_allclose(near, wide, atol=0.02 * np.abs(wide).max())
    refusal = "precision 'half' is none of float32, bf16x6, bf16, auto and auto_float32"
    with pytest.raises(Exception, match=refusal):
        caffe.Scorer(*files, precision="half")


def test_tables_without_rows(scorer, rows):
    for table in (
        rows[:0],
        lists(rows[:0]),
        pa.table({"x": lists(rows[:0])}),
        pd.DataFrame(rows[:0]),
    ):
        assert scorer.score(table).shape == (0, 4)


@pytest.mark.parametrize("form", ["float32", "DLPack", "fixed lists", "batch"])
def test_rows_are_not_copied(scorer, rows, form):
    given = tables(rows)[form]
    scorer.score(*given)  # what a first call keeps
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    scores = scorer.score(*given)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert pa.total_allocated_bytes() == before
    assert peak - scores.nbytes < rows.nbytes / 2


def test_no_memory_of_arrow_is_kept(scorer, rows):
    before = pa.total_allocated_bytes()
    for _ in range(20):
        scorer.score(pa.table({"features": lists(rows)}), "features")
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.zeros(INPUTS), "an axis of their own"),
        (np.zeros((2, INPUTS - 1)), "11"),
        (pa.array([[1.0] * INPUTS, None], pa.list_(pa.float32())), "has nulls"),
        (pa.array([[1.0] * 11 + [None]], pa.list_(pa.float32())), "has nulls"),
        (pa.array([[1.0] * INPUTS, [1.0]], pa.list_(pa.float32())), "row 1 of the column has 1"),
        (pa.array([[1.0] * INPUTS], pa.list_(pa.float64())), "lists of float32"),
        (pa.table({"a": [1], "b": [2]}), "one of a, b"),
        (np.ma.masked_equal(np.ones((2, INPUTS)), 1), "masked"),
        (np.ones((2, INPUTS), np.complex64), "complex"),
    ],
)
def test_what_cannot_be_scored_is_told(scorer, table, words):
    with pytest.raises((ValueError, TypeError, caffe.Error), match=words):
        scorer.score(table)


def test_nothing_but_numpy_is_loaded(files):
    program = (
        "import sys, numpy, cafetiere\n"
        f"scorer = cafetiere.Scorer({str(files[0])!r}, {str(files[1])!r})\n"
        "print(scorer.score(numpy.ones((1, 12))).shape)\n"
        "print(sorted({'pyarrow', 'pandas', 'pyspark'} & set(sys.modules)))"
    )
    package = str(pathlib.Path(caffe.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": package},
        check=False,
    )
    assert done.stdout.split("\n")[:2] == ["(1, 4)", "[]"], done.stderr


SEVERAL = """
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 4 dim: 5 dim: 3 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 2 axis: 2 weight_filler { type: "xavier" } } }
layer { name: "flat" type: "Reshape" bottom: "ip" top: "flat"
  reshape_param { shape { dim: -1 dim: 2 } } }
layer { name: "prob" type: "Softmax" bottom: "flat" top: "prob" }
"""

RECURRENT = """
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 5 dim: 2 dim: 3 } } }
layer { name: "go" type: "DummyData" top: "cont"
  dummy_data_param { shape { dim: 5 dim: 2 } data_filler { value: 1 } } }
layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "out"
  recurrent_param { num_output: 3 weight_filler { type: "uniform" min: -1 max: 1 } } }
"""


def scorer_of(folder, text):
    (folder / "own.prototxt").write_text(text)
    net = caffe.Net(str(folder / "own.prototxt"), caffe.TEST)
    net.save(str(folder / "own.caffemodel"))
    return caffe.Scorer(folder / "own.prototxt", folder / "own.caffemodel"), net


def test_a_row_may_have_several_items(tmp_path):
    scorer, net = scorer_of(tmp_path, SEVERAL)
    rows = np.random.default_rng(1).normal(size=(6, 5, 3)).astype(np.float32)
    assert scorer.shape == (5, 2)
    weights, bias = (blob.data for blob in net.params["ip"])
    powers = np.exp(rows @ weights.T + bias)
    expected = powers / powers.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(scorer.score(rows), expected, rtol=1e-5)


def test_recurrent_layers_begin_anew_whatever_was_scored_and_however_it_is_chunked(tmp_path):
    scorer, _ = scorer_of(tmp_path, RECURRENT)
    rows = np.random.default_rng(1).normal(size=(10, 6)).astype(np.float32)
    first = scorer.score(rows)
    assert scorer.score(rows).tobytes() == first.tobytes()
    for cuts in ([3], [1, 2, 9], [5], [6, 7]):
        chunks = [lists(part) for part in np.split(rows, cuts)]
        assert scorer.score(pa.chunked_array(chunks)).tobytes() == first.tobytes(), cuts


def test_threads_may_share_one(scorer, rows):
    def score(i):
        return scorer.score(rows[i % ROWS :][:3]).tobytes()

    expected = [score(i) for i in range(400)]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert list(threads.map(score, range(400))) == expected
