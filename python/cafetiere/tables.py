# SPDX-License-Identifier: Apache-2.0
"""Tables of numbers, texts and dates in files, learned from and predicted without Spark."""

import ctypes
import json
import pathlib

import numpy as np

from cafetiere import _saved_table
from cafetiere._cells import (
    KINDS,
    check_columns,
    class_name,
    encoded,
    is_class,
    is_gap,
    read,
    rows_apart,
    rows_of,
    schema_of,
    type_of,
    types_of,
)
from cafetiere._columns import columns_of
from cafetiere._guard import Guard
from cafetiere._library import (
    CallbacksStruct,
    Error,
    Handle,
    call,
    call_for_bytes,
    call_for_json,
    call_for_text,
)
from cafetiere._split import patience_of, split
from cafetiere.onnx import import_onnx

__all__ = [
    "TableModel",
    "class_name",
    "columns_of",
    "fit",
    "is_class",
    "read",
    "rows_of",
    "type_of",
]

_MOST_TOLD = 1000  # points of a training's curve, nearly
_PREDICT = 'state { phase: TEST stage: "predict" }\n'


def _created(function, destroy, *arguments):
    made = ctypes.c_void_p()
    call(function, *arguments, ctypes.byref(made))
    return Handle(made, destroy)


def _named(cells):
    """Numbers that name classes, and are read as texts, in one form each."""
    return [cell if is_gap(cell) else class_name(cell) for cell in cells]


def _native(schema, rows):
    handle = _created("cft_rows_create", "cft_rows_destroy", json.dumps(schema).encode())
    chunk = b"".join(rows)
    call("cft_rows_append", handle, len(rows), chunk, len(chunk))
    return handle


def _net(types, kinds, label, rows, options, sizes=None):
    """The text of a net for these rows; sizes: of cells or images, by column."""
    chunk = b"".join(rows)
    columns = [
        {"name": name, "kind": kind, **(sizes or {}).get(name, {})} for name, kind in kinds.items()
    ]
    request = json.dumps({"schema": schema_of(types), "columns": columns}).encode()
    with _created("cft_table_create", "cft_table_destroy", request) as table:
        call("cft_table_add", table, len(rows), chunk, len(chunk))
        return call_for_text(
            "cft_table_net", table, json.dumps({**options, "label": label}).encode()
        )


def _given(net):
    """The prototxt of hidden layers and their weights, or b""."""
    if hasattr(net, "to_proto"):
        return str(net.to_proto()), b""
    if pathlib.Path(net).suffix != ".onnx":
        return net, b""
    return import_onnx(net)


class TableModel:
    """A net that reads rows of a table as they are.

    net: its prototxt; weights: a caffemodel's bytes; types: of the columns to learn from, by name;
    label: the column it predicts, or a list of them; quantiles: what it predicts, if it learned
    any; thresholds: by which the probabilities of classes are divided before the largest is taken,
    or above which each of several labels holds, if there are any; threads: those that predict.
    """

    def __init__(self, net, weights, types, label, quantiles=(), thresholds=()):
        self.net, self.weights, self.types, self.label = net, weights, types, label
        self.quantiles, self.thresholds, self.threads = list(quantiles), list(thresholds), 1
        described = json.dumps({"net": net + _PREDICT, "phase": "TEST"}).encode()
        told = call_for_json("cft_describe", described)
        label = next(top for top in told["data_layer"]["tops"] if top["name"] == "label")
        self.labels = label.get("values", [])
        self.has_several_labels = label["kinds"][0] == "FLAGS"
        self.output = "probability" if 'top: "probability"' in net else "prediction"
        width = next(blob["shape"][1] for blob in told["blobs"] if blob["name"] == self.output)
        self.has_several_numbers = self.output == "prediction" and width > 1 and not self.quantiles

    def predict(self, table):
        """The predictions for a table: labels as texts and their probabilities, or numbers.

        By thresholds the label is the one with the largest probability / threshold. Of quantiles
        the numbers are those of the one nearest to 0.5, see predict_quantiles(). Of several labels
        of a row they are the places of those whose probability is above their threshold, or 0.5
        without thresholds, and the probability of each; of several numbers a list of all.
        """
        values = self.scores(table)
        if self.thresholds and len(self.thresholds) != values.shape[1]:
            raise ValueError(
                f"the model has {len(self.thresholds)} thresholds for {values.shape[1]} classes or "
                "labels"
            )
        if self.has_several_labels:
            held = values > np.array(self.thresholds or [0.5])
            return [np.flatnonzero(row).tolist() for row in held], values.tolist()
        if self.labels:
            best = self._shares(values).argmax(axis=1)
            shares = values[np.arange(len(best)), best].tolist()
            return [self.labels[place] for place in best], shares
        if self.has_several_numbers:
            return values.tolist(), None
        best = np.argmin(np.abs(np.array(self.quantiles or [0.5]) - 0.5))
        return values[:, best].tolist(), None

    def _shares(self, values):
        """Probabilities of classes by their thresholds; by 0 infinite, as Spark ML has it."""
        values = values.astype(float)
        if not self.thresholds:
            return values
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(values > 0, values / self.thresholds, values)

    def predict_quantiles(self, table):
        """For each of the quantiles the numbers predicted for a table."""
        return self.scores(table).T.tolist() if self.quantiles else []

    def scores(self, table):
        """What the net computes: an array of the labels' probabilities, or of numbers, a row.

        table: lists of cells by column, a structured array of NumPy, a DataFrame of pandas, or what
        has Arrow's C data interface (PyArrow, Polars, DuckDB); None, NaN and their likes are gaps.
        """
        chunk, count = rows_of(columns_of(table), self.types)
        output = self.output
        options = {"net": self.net + _PREDICT, "schema": schema_of(self.types), "outputs": [output]}
        options["threads"] = self.threads
        with _created(
            "cft_predictor_create",
            "cft_predictor_destroy",
            json.dumps(options).encode(),
            self.weights,
            len(self.weights),
        ) as predictor:
            told = call_for_json("cft_predictor_describe", predictor)
            values = np.empty((count, told["outputs"][0]["size"]), np.float32)
            if count:
                outputs = (ctypes.c_void_p * 1)(values.ctypes.data)
                call("cft_predictor_run", predictor, count, chunk, len(chunk), outputs)
        return values

    def export_onnx(self, path):
        """Writes the model as an ONNX file whose inputs are the columns, as they are.

        Thresholds decide which class is "predictedLabel"; several labels have probabilities alone.
        """
        options = {"net": self.net + _PREDICT, "thresholds": self.thresholds if self.labels else []}
        options = json.dumps(options).encode()
        file = call_for_bytes("cft_onnx_export", options, self.weights, len(self.weights))
        pathlib.Path(path).write_bytes(file)

    def save(self, folder):
        """Writes net.prototxt, model.caffemodel and table.json into a folder.

        If one of them cannot be written, a model that was there stays as it was.
        """
        told = {"types": self.types, "label": self.label, "quantiles": self.quantiles}
        if self.thresholds:
            told["thresholds"] = self.thresholds
        files = {
            "net.prototxt": self.net.encode(),
            "model.caffemodel": self.weights,
            "table.json": json.dumps(told, indent=1).encode(),
        }
        _saved_table.write(folder, files)

    @classmethod
    def load(cls, folder):
        """Reads what save() wrote, or Spark: a model of cafetiere.spark.ml in a local folder.

        Of a model with a net for each key (groupCol), save that of a key, modelOf(key).
        """
        return cls(**_saved_table.read(folder))


def _sizes(columns, types, image_size):
    """What the engine is to know of cells that are more than a value."""
    sizes = {}
    for name, kind in types.items():
        if kind == "texts":
            sizes[name] = {"size": 0}
        elif kind == "flags":
            sizes[name] = {
                "size": next((len(cell) for cell in columns[name] if cell is not None), 1)
            }
        elif kind == "image" and image_size is not None:
            sizes[name] = {"resize": list(image_size)}
    return sizes


def _train(options, on_event, start, held_out, rows):
    """A trainer that has trained; what on_event raises, as Ctrl-C does, ends it and is raised."""
    guard = Guard()
    told = CallbacksStruct(
        None,
        CallbacksStruct.EVENT(lambda _, event: guard.run(on_event, json.loads(event))),
        None,
    )
    made = ctypes.c_void_p()
    call("cft_trainer_create", json.dumps(options).encode(), ctypes.byref(told), ctypes.byref(made))
    trainer = Handle(made, "cft_trainer_destroy", owner=told)
    if start:
        call("cft_trainer_restore", trainer, start, len(start), None, 0)
    if held_out is not None:
        call("cft_trainer_validation", trainer, held_out)
    try:
        guard.call("cft_trainer_run", trainer, None, rows)
    except Error as error:
        raise (error.__cause__ or error) from None
    return trainer


def fit(
    columns,
    label,
    *,
    features=(),
    categorical=(),
    classes=None,
    layers=(64, 32),
    net="",
    members=1,
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
    image_size=None,
    on_event=None,
):
    """Trains a model that predicts one column of a table from others.

    columns: lists of cells by name, or a table in another form that scores() of a TableModel takes;
    features: names, by default all but label and weight; categorical: names of columns of numbers
    that are categories; classes: whether the label is a class, by default what is_class() says;
    net: hidden layers instead of `layers`, as prototxt, a NetSpec or the path of an ONNX file, with
    whose weights the training starts; members: number of nets, 1 to 64, with these layers, which
    share embeddings and whose scores are averaged; weight: the column with the weight of each row
    in the loss; class_weights: "balanced" or pairs such as "spam=5, ham=1"; loss: for numbers,
    "squared", "huber" or "quantile"; validation: share of the rows to hold out and test on once per
    epoch; patience: number of consecutive epochs without an improvement by more than `tol` after
    which training ends, with the weights of the best epoch. None for either of these two means the
    default of `python -m cafetiere fit`: 0.1 from 100 rows on, and 10 from 1,500 rows on.
    image_size: height and width to which images are resized.
    A cell of an image is the bytes of a file, or an array of uint8, gray or red, green and blue.
    on_event: called with each event of the training, a dictionary.
    A label whose cells are lists of 0 and 1 means several labels, which class_weights names by
    their index.
    Returns a TableModel and the result of the training as of cft_trainer_result, with "held_out":
    the positions of the rows that were held out.
    """
    columns = columns_of(columns)
    targets = [label] if weight is None else [label, weight]
    check_columns([*targets, *features, *categorical], columns)
    for name in set(targets) & set(features):
        raise ValueError(f"column {name!r} is the label or the weight: take it out of the features")
    if min(epochs, batch) < 1 or not 0 <= lr <= 1e6 or not 0 <= (validation or 0) <= 0.9:
        raise ValueError("epochs and batch are 1 or more, lr to 1e6, validation from 0 to 0.9")
    if (patience or 0) > 0 and validation == 0:
        raise ValueError("patience needs rows to test on: give validation a share, such as 0.1")
    names = [*(features or [name for name in columns if name not in targets]), *targets]
    if len(names) == len(targets):
        raise ValueError("there is no column to learn from")
    named = is_class(columns[label]) if classes is None else classes
    types = types_of(columns, names, {*categorical, label} if named else {*categorical})
    if types[label] == "texts":
        types[label] = "flags"
    elif named and types[label] in ("i32", "i64"):
        types[label] = "string"  # a date names a class by its text
    kinds = {name: KINDS[kind] for name, kind in types.items()}
    kinds.update(dict.fromkeys((name for name in categorical if name in kinds), "CATEGORY"))
    if types[label] != "flags":
        kinds[label] = "CLASS" if named else "NUMBER"
    if named and (loss != "squared" or quantiles):
        raise ValueError(
            "loss and quantiles are of numbers, and label "
            f"{label!r} is learned as classes: learn numbers"
        )
    if not named and (loss == "quantile") != bool(quantiles):
        raise ValueError("loss quantile and quantiles, such as 0.1,0.5,0.9, need each other")
    if not named and types[label] not in ("f64", "flags"):
        raise ValueError(f"the cells of label {label!r} are no numbers: learn classes")
    if named and types[label] == "string" and type_of(columns[label]) == "f64":
        columns = {**columns, label: _named(columns[label])}
    if weight is not None:
        kinds[weight] = "WEIGHT"
    every = rows_apart(columns, types)
    classes_of = encoded(columns[label], types[label], label) if kinds[label] == "CLASS" else None
    held_back = split(every, None if classes_of is None else list(classes_of), validation, patience)
    patience = patience_of(patience, held_back)
    rows = [row for row, held in zip(every, held_back) if not held]
    held_out = [row for row, held in zip(every, held_back) if held]
    hidden, start = _given(net)
    step = min(batch, len(rows))
    shape = {"layers": list(layers), "net": hidden, "members": members}
    shape.update(batch=step, step_rows=step, class_weights=class_weights)
    if not named:
        shape.update(loss=loss, delta=huber_delta, quantiles=list(quantiles))
    net = _net(types, kinds, label, rows, shape, _sizes(columns, types, image_size))
    epoch = -(-len(rows) // step)
    solver = f'type: "AdamW" base_lr: {lr} lr_policy: "cosine" momentum: 0.9 weight_decay: 0.01'
    solver += f" display: {max(1, epochs * epoch // _MOST_TOLD)}"
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
    schema = schema_of(types)
    validation_rows = _native(schema, held_out) if held_out else None
    trainer = _train(options, on_event, start, validation_rows, _native(schema, rows))
    weights = call_for_bytes("cft_trainer_model", trainer)
    learned = {name: kind for name, kind in types.items() if name not in targets}
    model = TableModel(net, weights, learned, label, quantiles)
    places = [place for place, held in enumerate(held_back) if held]
    return model, {**call_for_json("cft_trainer_result", trainer), "held_out": places}
