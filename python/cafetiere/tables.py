# SPDX-License-Identifier: Apache-2.0
"""Tables of numbers, texts and dates in files, learned from and predicted without Spark."""

import csv
import ctypes
import datetime
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
    library,
)

_EPOCH = datetime.date(1970, 1, 1)
_START = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)
_MOST_CLASSES = 20  # of a label of numbers, unless one says that it names classes
_PACKED = {"f64": struct.Struct("<Id"), "i32": struct.Struct("<Ii"), "i64": struct.Struct("<Iq")}
_KINDS = {"f64": "NUMBER", "i32": "DATE", "i64": "TIMESTAMP", "string": "CATEGORY"}
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


def rows_of(columns, types):
    """A table's rows as the engine wants them, and how many they are."""
    for name in types:
        if name not in columns:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(columns)}")
    encoded = [_encoded(columns[name], kind, name) for name, kind in types.items()]
    rows = [b"".join(row) for row in zip(*encoded)]
    return b"".join(rows), len(rows)


def _schema(types):
    columns = [{"name": name, "type": _ENGINE.get(kind, kind)} for name, kind in types.items()]
    return {"columns": columns, "id": ""}


def _created(function, destroy, *arguments):
    made = ctypes.c_void_p()
    call(function, *arguments, ctypes.byref(made))
    return Handle(made, destroy)


def _net(types, kinds, label, chunk, count, options):
    """The text of a net for these rows."""
    columns = [{"name": name, "kind": kind} for name, kind in kinds.items()]
    for column in columns:
        if types[column["name"]] == "texts":
            column["size"] = 0
    request = json.dumps({"schema": _schema(types), "columns": columns}).encode()
    table = _created("cft_table_create", "cft_table_destroy", request)
    call("cft_table_add", table, count, chunk, len(chunk))
    return call_for_text("cft_table_net", table, json.dumps({**options, "label": label}).encode())


def _given(net):
    """The prototxt of hidden layers and their weights, or b""."""
    if hasattr(net, "to_proto"):
        return str(net.to_proto()), b""
    if pathlib.Path(net).suffix != ".onnx":
        return net, b""
    file = pathlib.Path(net).read_bytes()
    text, weights, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    out = (ctypes.byref(text), ctypes.byref(weights), ctypes.byref(size))
    call("cft_onnx_import", file, len(file), 1, *out)
    try:
        return ctypes.string_at(text).decode(), ctypes.string_at(weights, size.value)
    finally:
        library().cft_free(text)
        library().cft_free(weights)


def class_name(cell):
    """The label of a cell: numbers in their shortest form, as the engine names them."""
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return str(cell)
    return str(int(number)) if number.is_integer() else repr(number)


class TableModel:
    """A net that reads rows of a table as they are.

    net: its prototxt; weights: a caffemodel's bytes; types: of the columns to learn from, by name.
    """

    def __init__(self, net, weights, types, label):
        self.net, self.weights, self.types, self.label = net, weights, types, label
        described = json.dumps({"net": net + _PREDICT, "phase": "TEST"}).encode()
        tops = call_for_json("cft_describe", described)["data_layer"]["tops"]
        self.labels = tops[-1].get("values", [])

    def predict(self, columns):
        """The predictions for a table: labels as texts and their probabilities, or numbers."""
        chunk, count = rows_of(columns, self.types)
        output = "probability" if self.labels else "prediction"
        options = {"net": self.net + _PREDICT, "schema": _schema(self.types), "outputs": [output]}
        predictor = _created(
            "cft_predictor_create",
            "cft_predictor_destroy",
            json.dumps(options).encode(),
            self.weights,
            len(self.weights),
        )
        values = np.empty((count, max(1, len(self.labels))), np.float32)
        if count:
            outputs = (ctypes.c_void_p * 1)(values.ctypes.data)
            call("cft_predictor_run", predictor, count, chunk, len(chunk), outputs)
        if not self.labels:
            return [float(value) for value in values[:, 0]], None
        best = values.argmax(axis=1)
        return [self.labels[place] for place in best], values[np.arange(count), best].tolist()

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
        told = {"types": self.types, "label": self.label}
        (folder / "table.json").write_text(json.dumps(told, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder):
        """Reads what save() wrote."""
        folder = pathlib.Path(folder)
        told = json.loads((folder / "table.json").read_text(encoding="utf-8"))
        net = (folder / "net.prototxt").read_text(encoding="utf-8")
        return cls(net, (folder / "model.caffemodel").read_bytes(), told["types"], told["label"])


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
):
    """Learns one column of a table from others.

    columns: lists of cells by name; features: names, by default all but the label; categorical:
    of numbers that name something; classes: whether the label does, by default is_class() tells;
    net: hidden layers in place of `layers`, as prototxt, a NetSpec or the path of an ONNX file,
    whose weights are the first ones.
    Returns a TableModel and what cft_trainer_result tells.
    """
    if label not in columns:
        raise ValueError(f"there is no column {label!r}; there are {', '.join(columns)}")
    names = [*(features or [name for name in columns if name != label]), label]
    types = {name: type_of(columns.get(name, [])) for name in names}
    kinds = {name: _KINDS[kind] for name, kind in types.items()}
    kinds.update(dict.fromkeys(categorical, "CATEGORY"))
    named = is_class(columns[label]) if classes is None else classes
    kinds[label] = "CLASS" if named else "NUMBER"
    chunk, count = rows_of(columns, types)
    if count == 0:
        raise ValueError("the table has no rows")
    hidden, start = _given(net)
    step = min(batch, count)
    shape = {"layers": list(layers), "batch": step, "step_rows": step, "net": hidden}
    net = _net(types, kinds, label, chunk, count, shape)
    options = {
        "solver": f'type: "AdamW" base_lr: {lr} lr_policy: "cosine" momentum: 0.9 '
        "weight_decay: 0.01 max_iter: 1",
        "net": net,
        "max_iter": epochs * -(-count // shape["batch"]),
        "seed": seed,
        "threads": threads,
    }
    schema = json.dumps(_schema(types)).encode()
    rows = _created("cft_rows_create", "cft_rows_destroy", schema)
    call("cft_rows_append", rows, count, chunk, len(chunk))
    trainer = _created(
        "cft_trainer_create", "cft_trainer_destroy", json.dumps(options).encode(), None
    )
    if start:
        call("cft_trainer_restore", trainer, start, len(start), None, 0)
    call("cft_trainer_run", trainer, None, rows)
    weights = call_for_bytes("cft_trainer_model", trainer)
    del types[label]
    return TableModel(net, weights, types, label), call_for_json("cft_trainer_result", trainer)
