# SPDX-License-Identifier: Apache-2.0
"""Learns from a table in a file, and predicts for another one; runs nets with Python layers.

    python -m cafetiere fit visitors.csv --label buys --out model
    python -m cafetiere predict model others.csv > predictions.csv
    python -m cafetiere export_onnx model model.onnx
    python -m cafetiere train --solver solver.prototxt
    python -m cafetiere time --model net.prototxt

A file is a CSV with a header or, with pyarrow installed, Parquet. The types of a CSV's columns are
found by reading it: numbers, dates as 2026-07-01, times as 2026-07-01T12:30:00, else text; empty
cells are missing.
"""

import argparse
import csv
import json
import os
import pathlib
import signal
import sys

from cafetiere import _programs, tables
from cafetiere._cells import check_columns
from cafetiere._library import call_for_text


def _names(text):
    return [name for name in text.split(",") if name]


def _numbers(text):
    return [int(units) for units in _names(text)]


def _shares(text):
    return [float(share) for share in _names(text)]


def _arguments():
    parser = argparse.ArgumentParser(
        prog="python -m cafetiere",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    fit = commands.add_parser("fit", help="learns one column of a table from the others")
    fit.add_argument("table", help="a CSV or Parquet file")
    fit.add_argument("--label", required=True, help="the column to learn")
    fit.add_argument("--out", required=True, help="folder for the model")
    fit.add_argument("--test", help="a table of the same columns to test on")
    fit.add_argument("--features", type=_names, default=[], help="A,B,..: columns to learn from")
    fit.add_argument("--drop", type=_names, default=[], help="A,B,..: columns not to learn from")
    fit.add_argument(
        "--categorical", type=_names, default=[], help="A,B,..: of numbers that name something"
    )
    fit.add_argument(
        "--learn",
        choices=["classes", "numbers"],
        help="what the label is; by default texts and few whole numbers are classes",
    )
    fit.add_argument(
        "--layers", type=_numbers, default=[64, 32], help="units of the hidden layers, as 64,32"
    )
    fit.add_argument(
        "--net", default="", help="hidden layers instead: a prototxt, or ONNX with its weights"
    )
    fit.add_argument("--epochs", type=int, default=50, help="passes over the table")
    fit.add_argument("--batch", type=int, default=256, help="rows of a step")
    fit.add_argument("--lr", type=float, default=0.003, help="learning rate at the beginning")
    fit.add_argument("--seed", type=int, default=1, help="seed of everything random")
    fit.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    fit.add_argument("--weight", help="the column with what each row counts in the loss")
    fit.add_argument(
        "--class-weights", default="", help='"balanced", or pairs such as "spam=5, ham=1"'
    )
    fit.add_argument("--loss", choices=["squared", "huber", "quantile"], default="squared")
    fit.add_argument(
        "--huber-delta", type=float, default=1.0, help="where huber begins, in deviations"
    )
    fit.add_argument(
        "--quantiles", type=_shares, default=[], help="of loss quantile, as 0.1,0.5,0.9"
    )
    fit.add_argument(
        "--validation",
        type=float,
        default=0.0,
        help="share of the rows to test on once an epoch; the others are trained on",
    )
    fit.add_argument(
        "--patience",
        type=int,
        default=0,
        help="epochs in a row that are no better, after which it ends with the best one's weights",
    )
    fit.add_argument("--tol", type=float, default=0.0, help="by how much an epoch must be better")
    predict = commands.add_parser("predict", help="adds predictions to a table, as a CSV")
    predict.add_argument("model", help="the folder that fit wrote")
    predict.add_argument("table", help="a CSV or Parquet file")
    onnx = commands.add_parser(
        "export_onnx", help="writes a model as ONNX, with the columns as its inputs"
    )
    onnx.add_argument("model", help="the folder that fit wrote")
    onnx.add_argument("output", help="the .onnx file to write")
    programs = _programs.add_commands(commands)
    return parser.parse_args(), programs


def _tested(model, columns):
    """A sentence on how well a model predicts those rows of a table that have a label."""
    label = columns[model.label]
    rows = [row for row, cell in enumerate(label) if cell is not None]
    if not rows:
        return "no row has a label"
    predicted, shares = model.predict(columns)
    if shares is None:
        squares = [(float(label[row]) - predicted[row]) ** 2 for row in rows]
        return f"root mean squared error {(sum(squares) / len(rows)) ** 0.5:.6g}"
    if model.has_several_labels:
        right = [
            (share > 0.5) == bool(flag)
            for row in rows
            for flag, share in zip(label[row], shares[row])
        ]
        return f"accuracy of the labels {sum(right) / len(right):.4f}"
    # A class of whole numbers reads as "1", whatever the file writes.
    name = tables.class_name
    right = sum(name(label[row]) == name(predicted[row]) for row in rows)
    return f"accuracy {right / len(rows):.4f}"


def _stopped(told, patience):
    """A sentence on which epoch was the best, and why the training ended."""
    epoch = told["best_step"] // told["interval"]
    why = f"{patience} epochs were no better" if told["stopped"] else "all epochs were trained"
    return f"best validation loss {told['best']:.6g}, after epoch {epoch}; {why}"


def _net(path):
    if not path or pathlib.Path(path).suffix == ".onnx":
        return path
    return pathlib.Path(path).read_text(encoding="utf-8")


def _features(given, columns):
    """The columns to learn from."""
    check_columns([given.label, *given.drop, *given.features], columns)
    left = {*given.drop} if given.features else {*given.drop, given.label, given.weight}
    features = [name for name in given.features or columns if name not in left]
    if not features:
        raise ValueError("there is no column to learn from")
    return features


def _read_test(given, columns, features):
    """The tables that --test names; what is wrong with one is said before the training."""
    if not given.test:
        return {}
    table = tables.read(given.test)
    check_columns([given.label], table)
    tables.rows_of(table, {name: tables.type_of(columns[name]) for name in features})
    return {given.test: table}


def _write_report(given, result, events, tests):
    """Writes report.html beside the model."""
    title = f"{pathlib.Path(given.table).name}: {given.label}"
    lines = "".join(json.dumps(event) + "\n" for event in events)
    shown = json.dumps({**result, "title": title, "tested": tests})
    page = call_for_text("cft_report", lines.encode(), shown.encode())
    (pathlib.Path(given.out) / "report.html").write_text(page, encoding="utf-8")


def _fit(given):
    columns = tables.read(given.table)
    features = _features(given, columns)
    to_test = {given.table: columns, **_read_test(given, columns, features)}
    pathlib.Path(given.out).mkdir(parents=True, exist_ok=True)
    events = []
    model, result = tables.fit(
        columns,
        given.label,
        features=features,
        categorical=given.categorical,
        classes=None if given.learn is None else given.learn == "classes",
        layers=given.layers,
        net=_net(given.net),
        epochs=given.epochs,
        batch=given.batch,
        lr=given.lr,
        seed=given.seed,
        threads=given.threads,
        weight=given.weight,
        class_weights=given.class_weights,
        loss=given.loss,
        huber_delta=given.huber_delta,
        quantiles=given.quantiles,
        validation=given.validation,
        patience=given.patience,
        tol=given.tol,
        on_event=events.append,
    )
    model.save(given.out)
    print(f"{result['steps']} steps, {result['seconds']:.1f} s, loss {result['loss']:.4f}")
    if stopping := result["early_stopping"]:
        print(_stopped(stopping, given.patience))
    tests = {path: _tested(model, table) for path, table in to_test.items()}
    for path, sentence in tests.items():
        print(f"{path}: {sentence}")
    _write_report(given, result, events, tests)


def _predict(given):
    model = tables.TableModel.load(given.model)
    columns = tables.read(given.table)
    predicted, shares = model.predict(columns)
    added = {"prediction": predicted, **({} if shares is None else {"probability": shares})}
    quantiles = [f"quantile_{share:g}" for share in model.quantiles]
    added.update(zip(quantiles, model.predict_quantiles(columns)))
    for name in added:
        if name in columns:
            raise ValueError(f"the table has a column {name!r} already; rename it")
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow([*columns, *added])
    out.writerows(zip(*columns.values(), *added.values()))


def _export_onnx(given):
    tables.TableModel.load(given.model).export_onnx(given.output)


def main():
    """Runs the arguments of this process; returns the exit status."""
    given, programs = _arguments()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # of `| head`
    try:
        commands = {"fit": _fit, "predict": _predict, "export_onnx": _export_onnx, **programs}
        commands[given.command](given)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        print(f"cafetiere: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cafetiere: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())
