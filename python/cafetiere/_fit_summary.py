# SPDX-License-Identifier: Apache-2.0
"""What `python -m cafetiere fit` says: of the table, of the training, of how rows are predicted.

The lines are those of cli/fit_summary.cc.
"""

import json
import pathlib
import shlex
from collections import Counter

from cafetiere import _cells, tables
from cafetiere._library import call_for_json
from cafetiere._split import FEWEST_TO_HOLD_BACK

_KINDS = {
    "f64": ("number", "numbers"),
    "string": ("category", "categories"),
    "i32": ("date", "dates"),
    "i64": ("time", "times"),
    "texts": ("list of categories", "lists of categories"),
    "image": ("image", "images"),
}


def is_empty(cell):
    """Whether a cell is missing or, as Parquet may have it, a text of no letters."""
    return _cells.is_gap(cell) or (isinstance(cell, str) and not cell)


def is_class(given, label):
    """Whether the cells of the label name classes, one in each."""
    if tables.type_of(label) == "texts":
        return False
    return tables.is_class(label) if given.learn is None else given.learn == "classes"


def _counted(count, one, many):
    return f"{count:,} {one if count == 1 else many}"


def table_line(given, columns, features):
    """What is learned from what."""
    label = columns[given.label]
    learned = "several labels" if tables.type_of(label) == "texts" else "numbers"
    if is_class(given, label):
        learned = _counted(len({*map(tables.class_name, label)}), "class", "classes")
    types = [
        "string"
        if name in given.categorical and tables.type_of(columns[name]) != "texts"
        else tables.type_of(columns[name])
        for name in features
    ]
    kinds = [_counted(types.count(kind), *_KINDS[kind]) for kind in _KINDS if kind in types]
    gaps = sum(is_empty(cell) for name in features for cell in columns[name])
    return (
        f"{given.table}: {_counted(len(label), 'row', 'rows')}; learning {given.label} ({learned}) "
        f"from {_counted(len(features), 'column', 'columns')}: {', '.join(kinds)}; "
        f"{_counted(gaps, 'empty cell', 'empty cells')}"
    )


def text_lines(columns, features):
    """Of columns that are texts by few of their cells."""
    for name in features:
        cells = columns[name]
        if tables.type_of(cells) != "string":
            continue
        if (odd := _cells.odd_cell(cells)) is not None:
            yield (
                f'column "{name}" is text, as row {odd + 1} below the header has "{cells[odd]}"; '
                "empty cells are missing values"
            )


def _ended(given, result, rows):
    """Which epoch was the best and why the training ended, or why that was not looked at."""
    if told := result["early_stopping"]:
        epoch = told["best_step"] // told["interval"]
        tests = len(told["curve"]) - 1 - epoch
        why = f"{tests} epochs were no better" if told["stopped"] else "all epochs were trained"
        return [f"best validation loss {told['best']:.6g}, after epoch {epoch}; {why}"]
    if not result["held_out"] and given.validation is None:
        if rows < FEWEST_TO_HOLD_BACK:
            return ["no rows are held back of fewer than 100; --validation 0.1 holds a tenth back"]
        return ["no rows were held back, as too few differ or have a class that others have"]
    if result["held_out"] and given.patience is None:
        return ["no early stopping on a table of fewer than 1,500 rows; --patience 10 stops early"]
    return []


def training_lines(given, net, result, rows):
    """What was trained, and how it ended."""
    asked = json.dumps({"net": net, "phase": "TRAIN"}).encode()
    parameters = call_for_json("cft_describe", asked)["parameters"]
    layers = ",".join(map(str, given.layers))
    layers = given.net or (f"hidden layers {layers}" if layers else "no hidden layers")
    if given.members > 1:
        layers = f"{given.members} members of {layers}"
    yield f"net: {layers}; {parameters:,} parameters"
    yield f"{result['steps']} steps, {result['seconds']:.1f} s, loss {result['loss']:.4f}"
    yield from _ended(given, result, rows)


class Scored:
    """The predictions for the rows of a table, beside their labels."""

    def __init__(self, model, columns):
        self._model, label = model, columns[model.label]
        self._predicted, self._shares = model.predict(columns)
        self._labelled = [row for row, cell in enumerate(label) if cell is not None]
        self._is_of_numbers = self._shares is None
        if self._is_of_numbers:
            self._label = [None if cell is None else float(cell) for cell in label]
        elif model.has_several_labels:
            self._label = label
        else:  # a class of whole numbers reads as "1", whatever the file writes
            self._label = [None if cell is None else tables.class_name(cell) for cell in label]
            self._predicted = [tables.class_name(name) for name in self._predicted]

    def all(self):
        """How well all rows that have a label are predicted."""
        return self._measured(self._labelled) if self._labelled else "no row has a label"

    def some(self, rows):
        """The same of some rows, beside the best that is to be had without looking at columns."""
        measured, labels = self._measured(rows), [self._label[row] for row in rows]
        if self._model.has_several_labels:
            return measured
        if self._is_of_numbers:
            mean = sum(labels) / len(rows)
            error = (sum((label - mean) ** 2 for label in labels) / len(rows)) ** 0.5
            return f"{measured} (always the mean: {error:.6g})"
        ((_, most),) = Counter(labels).most_common(1)
        return f"{measured} (always the commonest class: {most / len(rows):.4f})"

    def _measured(self, rows):
        if self._is_of_numbers:
            squares = [(self._label[row] - self._predicted[row]) ** 2 for row in rows]
            return f"root mean squared error {(sum(squares) / len(rows)) ** 0.5:.6g}"
        if self._model.has_several_labels:
            right = [
                (share > 0.5) == bool(flag)
                for row in rows
                for flag, share in zip(self._label[row], self._shares[row])
            ]
            return f"accuracy of the labels {sum(right) / len(right):.4f}"
        right = sum(self._label[row] == self._predicted[row] for row in rows)
        return f"accuracy {right / len(rows):.4f}"


def folder_lines(out, program):
    """Where the model is, and how to predict with it."""
    yield f"model: {out}"
    yield f"report: {pathlib.Path(out) / 'report.html'}"
    yield f"to predict: {program} predict {shlex.quote(out)} TABLE > predictions.csv"
