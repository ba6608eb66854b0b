# SPDX-License-Identifier: Apache-2.0
"""Tables of numbers, texts and dates in files, learned from and predicted without Spark."""

import csv
import ctypes
import datetime
import hashlib
import json
import pathlib
import struct

import numpy as np

from cafetiere._library import (
    Handle,
    call,
    call_for_bytes,
    call_for_json,
    call_for_text,
)
from cafetiere.onnx import import_onnx

_EPOCH = datetime.date(1970, 1, 1)
_START = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)
_MOST_CLASSES = 20  # of a label of numbers, unless one says that it names classes
_PACKED = {"f64": struct.Struct("<Id"), "i32": struct.Struct("<Ii"), "i64": struct.Struct("<Iq")}
_KINDS = {"f64": "NUMBER", "i32": "DATE", "i64": "TIMESTAMP", "string": "CATEGORY"}
_TYPES = {kind: name for name, kind in _KINDS.items()}
_KINDS["texts"] = "CATEGORY"
_ENGINE = {"texts": "string"}  # where the engine's type has another name
_TEXT_END = b"\x1f"  # what the engine wants behind each text of a list
_PREDICT = 'state { phase: TEST stage: "predict" }\n'


def read(path):
    """The columns of a CSV with a header, or of a Parquet file: lists by name; None where empty."""
    if pathlib.Path(path).suffix == ".parquet":
        import pyarrow.parquet  # only who has such a file needs it

        table = pyarrow.parquet.read_table(path)
        return {name: table[name].to_pylist() for name in table.column_names}
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        names = next(rows, [])
        cells = []
        for row in rows:
            if len(row) != len(names):
                raise ValueError(
                    f"{path}:{rows.line_num}: {len(row)} cells, and the header has {len(names)}"
                )
            cells.append([cell or None for cell in row])
    return dict(zip(names, map(list, zip(*cells)))) if cells else {name: [] for name in names}


def _number(cell):
    if isinstance(cell, str) and "_" in cell:  # Python would pass over it
        raise ValueError("an underscore")
    return float(cell)


def _days(cell):
    if isinstance(cell, datetime.datetime):
        raise ValueError("a time of day")
    day = cell if isinstance(cell, datetime.date) else datetime.date.fromisoformat(cell)
    return (day - _EPOCH).days


def _micros(cell):
    time = cell if isinstance(cell, datetime.datetime) else datetime.datetime.fromisoformat(cell)
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.timezone.utc)
    return (time - _START) // _MICROSECOND


def _text(cell):
    return str(cell).encode()


def _texts(cell):
    if isinstance(cell, str):
        raise TypeError("one text, where there is to be a list")
    texts = [
        text if isinstance(text, str) else class_name(text) for text in cell if text is not None
    ]
    return b"".join(text.encode() + _TEXT_END for text in texts)


_READ = {"f64": _number, "i32": _days, "i64": _micros, "string": _text, "texts": _texts}


def type_of(cells):
    """How a column is encoded: the first type that all of its cells can be read as."""
    there = [cell for cell in cells if cell is not None]
    if any(isinstance(cell, (list, tuple, np.ndarray)) for cell in there):
        return "texts"
    for kind, read_cell in _READ.items():
        try:
            for cell in there:
                read_cell(cell)
        except (ValueError, TypeError):
            continue
        return kind
    return "string"


def _encoded(cells, kind, name):
    """Each cell as the engine wants it: its size, then its bytes; no bytes where it is missing."""
    for number, cell in enumerate(cells):
        if cell is None:
            yield b"\0\0\0\0"
            continue
        try:
            value = _READ[kind](cell)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"column {name!r}, row {number}: {cell!r} is none of what was trained on ({kind})"
            ) from error
        if kind in ("string", "texts"):
            yield struct.pack("<I", len(value)) + value
        else:
            packed = _PACKED[kind]
            yield packed.pack(packed.size - 4, value)


def _rows(columns, types):
    """A table's rows, each as the engine wants it."""
    for name in types:
        if name not in columns:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(columns)}")
    encoded = [_encoded(columns[name], kind, name) for name, kind in types.items()]
    return [b"".join(row) for row in zip(*encoded)]


def rows_of(columns, types):
    """A table's rows as the engine wants them, and how many they are."""
    rows = _rows(columns, types)
    return b"".join(rows), len(rows)


def _is_held_out(row, fraction):
    """Whether a row is tested on: by a hash of all its values, so that equal rows stay together."""
    return int.from_bytes(hashlib.blake2b(row, digest_size=8).digest(), "big") < fraction * 2**64


def _schema(types):
    columns = [{"name": name, "type": _ENGINE.get(kind, kind)} for name, kind in types.items()]
    return {"columns": columns, "id": ""}


def _created(function, destroy, *arguments):
    made = ctypes.c_void_p()
    call(function, *arguments, ctypes.byref(made))
    return Handle(made, destroy)


def _native(schema, rows):
    handle = _created("cft_rows_create", "cft_rows_destroy", json.dumps(schema).encode())
    chunk = b"".join(rows)
    call("cft_rows_append", handle, len(rows), chunk, len(chunk))
    return handle


def _net(types, kinds, label, rows, options):
    """The text of a net for these rows."""
    chunk = b"".join(rows)
    columns = [{"name": name, "kind": kind} for name, kind in kinds.items()]
    for column in columns:
        if types[column["name"]] == "texts":
            column["size"] = 0
    request = json.dumps({"schema": _schema(types), "columns": columns}).encode()
    table = _created("cft_table_create", "cft_table_destroy", request)
    call("cft_table_add", table, len(rows), chunk, len(chunk))
    return call_for_text("cft_table_net", table, json.dumps({**options, "label": label}).encode())


def _given(net):
    """The prototxt of hidden layers and their weights, or b""."""
    if hasattr(net, "to_proto"):
        return str(net.to_proto()), b""
    if pathlib.Path(net).suffix != ".onnx":
        return net, b""
    return import_onnx(net)


def class_name(cell):
    """The label of a cell: numbers in their shortest form, as the engine names them."""
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return str(cell)
    return str(int(number)) if number.is_integer() else repr(number)


class TableModel:
    """A net that reads rows of a table as they are.

    net: its prototxt; weights: a caffemodel's bytes; types: of the columns to learn from, by name;
    quantiles: what it predicts, if it learned any.
    """

    def __init__(self, net, weights, types, label, quantiles=()):
        self.net, self.weights, self.types, self.label = net, weights, types, label
        self.quantiles = list(quantiles)
        described = json.dumps({"net": net + _PREDICT, "phase": "TEST"}).encode()
        tops = call_for_json("cft_describe", described)["data_layer"]["tops"]
        self.labels = next(top.get("values", []) for top in tops if top["name"] == "label")
        # Of several labels that hold or do not the chances are those of each.
        self.output = "probability" if 'top: "probability"' in net else "prediction"

    def predict(self, table):
        """The predictions for a table: labels as texts and their probabilities, or numbers.

        Of quantiles the numbers are those of the one nearest to 0.5, see predict_quantiles().
        """
        values = self.scores(table)
        if not self.labels:
            best = np.argmin(np.abs(np.array(self.quantiles or [0.5]) - 0.5))
            return values[:, best].astype(float).tolist(), None
        best = values.argmax(axis=1)
        return [self.labels[place] for place in best], values[np.arange(len(best)), best].tolist()

    def predict_quantiles(self, table):
        """For each of the quantiles the numbers predicted for a table."""
        return self.scores(table).T.astype(float).tolist() if self.quantiles else []

    def scores(self, table):
        """What the net computes: an array of the labels' probabilities, or of numbers, a row.

        table: lists of cells by column, a structured array of NumPy, a DataFrame of pandas, or what
        has Arrow's C data interface (PyArrow, Polars, DuckDB); None, NaN and their likes are gaps.
        """
        chunk, count = rows_of(columns_of(table), self.types)
        output = self.output
        options = {"net": self.net + _PREDICT, "schema": _schema(self.types), "outputs": [output]}
        predictor = _created(
            "cft_predictor_create",
            "cft_predictor_destroy",
            json.dumps(options).encode(),
            self.weights,
            len(self.weights),
        )
        told = call_for_json("cft_predictor_describe", predictor)
        values = np.empty((count, told["outputs"][0]["size"]), np.float32)
        if count:
            outputs = (ctypes.c_void_p * 1)(values.ctypes.data)
            call("cft_predictor_run", predictor, count, chunk, len(chunk), outputs)
        return values

    def export_onnx(self, path):
        """Writes the model as an ONNX file whose inputs are the columns, as they are."""
        options = json.dumps({"net": self.net + _PREDICT}).encode()
        file = call_for_bytes("cft_onnx_export", options, self.weights, len(self.weights))
        pathlib.Path(path).write_bytes(file)

    def save(self, folder):
        """Writes net.prototxt, model.caffemodel and table.json into a folder."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "net.prototxt").write_text(self.net, encoding="utf-8")
        (folder / "model.caffemodel").write_bytes(self.weights)
        told = {"types": self.types, "label": self.label, "quantiles": self.quantiles}
        (folder / "table.json").write_text(json.dumps(told, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder):
        """Reads what save() wrote, or Spark: a model of cafetiere.spark.ml in a local folder."""
        folder = pathlib.Path(folder)
        if (folder / "net" / "metadata").is_dir():
            return cls._of_spark(folder / "net")
        told = json.loads((folder / "table.json").read_text(encoding="utf-8"))
        net = (folder / "net.prototxt").read_text(encoding="utf-8")
        weights = (folder / "model.caffemodel").read_bytes()
        return cls(net, weights, told["types"], told["label"], told.get("quantiles", ()))

    @classmethod
    def _of_spark(cls, folder):
        from google.protobuf import text_format  # only who has such a model needs it

        from cafetiere.proto import caffe_pb2

        metadata = next((folder / "metadata").glob("part-*")).read_text(encoding="utf-8")
        params = json.loads(metadata)
        label = params["paramMap"].get("labelCol", params["defaultParamMap"].get("labelCol"))
        parsed = text_format.Parse(params["paramMap"]["net"], caffe_pb2.NetParameter())
        parsed.ClearField("state")  # predict() gives its own
        types = {}
        for layer in parsed.layer:
            for top in layer.table_data_param.top:
                for column in () if top.target else top.column:
                    kind = type(column).Kind.Name(column.kind)
                    several = kind == "CATEGORY" and column.size > 1
                    types[column.name] = "texts" if several else _TYPES.get(kind, "string")
        weights = (folder / "data" / "model.caffemodel").read_bytes()
        return cls(text_format.MessageToString(parsed), weights, types, label)


def columns_of(table):
    """The columns of a table in any form that TableModel.scores() takes: lists of cells by name."""
    if isinstance(table, dict):
        return table
    if isinstance(table, np.ndarray) and table.dtype.names:
        return {name: table[name].tolist() for name in table.dtype.names}
    if type(table).__module__.partition(".")[0] == "pandas":
        gaps = table.isna()
        return {
            name: [None if gap else cell for cell, gap in zip(table[name], gaps[name])]
            for name in table.columns
        }
    if hasattr(table, "__arrow_c_stream__"):
        import pyarrow  # only who has such a table needs it

        return pyarrow.table(table).to_pydict()
    raise TypeError(f"a {type(table).__name__} is no table: give columns by name")


def is_class(cells):
    """Whether a label names classes: texts, or few whole numbers."""
    if type_of(cells) != "f64":
        return True
    values = {float(cell) for cell in cells if cell is not None}
    return len(values) <= _MOST_CLASSES and all(value.is_integer() for value in values)


def fit(
    columns,
    label,
    *,
    features=(),
    categorical=(),
    classes=None,
    layers=(64, 32),
    net="",
    epochs=50,
    batch=256,
    lr=0.003,
    seed=1,
    threads=1,
    weight=None,
    class_weights="",
    loss="squared",
    huber_delta=1.0,
    quantiles=(),
    validation=0.0,
    patience=0,
    tol=0.0,
):
    """Learns one column of a table from others.

    columns: lists of cells by name; features: names, by default all but label and weight;
    categorical: of numbers that name something; classes: whether the label does, by default
    is_class() tells; net: hidden layers in place of `layers`, as prototxt, a NetSpec or the path of
    an ONNX file, whose weights are the first ones; weight: the column of what a row counts in the
    loss; class_weights: "balanced" or pairs such as "spam=5, ham=1"; loss: of numbers, "squared",
    "huber" or "quantile"; validation: share of the rows to test on once an epoch, in place of
    training on them; patience: epochs in a row that are no better by `tol`, after which it ends,
    with the best epoch's weights.
    Returns a TableModel and what cft_trainer_result tells.
    """
    if label not in columns:
        raise ValueError(f"there is no column {label!r}; there are {', '.join(columns)}")
    if patience > 0 and validation == 0:
        raise ValueError("patience needs rows to test on: give validation a share, such as 0.1")
    targets = [label] if weight is None else [label, weight]
    for name in set(targets) & set(features):
        raise ValueError(f"column {name!r} is the label or the weight: take it out of the features")
    names = [*(features or [name for name in columns if name not in targets]), *targets]
    types = {name: type_of(columns.get(name, [])) for name in names}
    kinds = {name: _KINDS[kind] for name, kind in types.items()}
    kinds.update(dict.fromkeys(categorical, "CATEGORY"))
    named = is_class(columns[label]) if classes is None else classes
    kinds[label] = "CLASS" if named else "NUMBER"
    if weight is not None:
        kinds[weight] = "WEIGHT"
    every = _rows(columns, types)
    rows = [row for row in every if not _is_held_out(row, validation)]
    held_out = [row for row in every if _is_held_out(row, validation)]
    if not rows:
        raise ValueError("the table has no rows to train on")
    hidden, start = _given(net)
    step = min(batch, len(rows))
    shape = {"layers": list(layers), "batch": step, "step_rows": step, "net": hidden}
    shape["class_weights"] = class_weights
    if not named:
        shape.update(loss=loss, delta=huber_delta, quantiles=list(quantiles))
    net = _net(types, kinds, label, rows, shape)
    epoch = -(-len(rows) // step)
    solver = f'type: "AdamW" base_lr: {lr} lr_policy: "cosine" momentum: 0.9 weight_decay: 0.01'
    solver += " max_iter: 1"
    if held_out:
        solver += f" test_interval: {epoch}"
    if patience > 0:
        solver += f" early_stopping {{ patience: {patience} tolerance: {tol} }}"
    options = {
        "solver": solver,
        "net": net,
        "max_iter": epochs * epoch,
        "seed": seed,
        "threads": threads,
    }
    schema = _schema(types)
    trainer = _created(
        "cft_trainer_create", "cft_trainer_destroy", json.dumps(options).encode(), None
    )
    if start:
        call("cft_trainer_restore", trainer, start, len(start), None, 0)
    if held_out:
        call("cft_trainer_validation", trainer, _native(schema, held_out))
    call("cft_trainer_run", trainer, None, _native(schema, rows))
    weights = call_for_bytes("cft_trainer_model", trainer)
    learned = {name: kind for name, kind in types.items() if name not in targets}
    model = TableModel(net, weights, learned, label, quantiles)
    return model, call_for_json("cft_trainer_result", trainer)
