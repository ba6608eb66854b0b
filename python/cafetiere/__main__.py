# SPDX-License-Identifier: Apache-2.0
"""Learns from a table in a file, and predicts for another one; runs nets with Python layers.

    python -m cafetiere fit visitors.csv --label buys
    python -m cafetiere predict visitors.model others.csv > predictions.csv
    python -m cafetiere export_onnx visitors.model visitors.onnx
    python -m cafetiere train --solver solver.prototxt
    python -m cafetiere time --model net.prototxt

A file is a CSV with a header or, with pyarrow installed, Parquet. The types of a CSV's columns are
found by reading it: numbers, dates as 2026-07-01, times as 2026-07-01T12:30:00, else text; empty
cells are missing.
"""

import argparse
import csv
import functools
import pathlib
import signal
import sys

from cafetiere import _fit, _programs, tables


def _program():
    """What this process was started as: the wheel's program hands over what Parquet takes."""
    is_program = pathlib.Path(sys.argv[0]).name == "cafetiere"
    return "cafetiere" if is_program else "python -m cafetiere"


def _arguments():
    parser = argparse.ArgumentParser(
        prog=_program(),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # A flag that is cut short may mean another one, which is to be said.
    whole = functools.partial(argparse.ArgumentParser, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=whole)
    _fit.add_fit(commands)
    predict = commands.add_parser("predict", help="adds predictions to a table, as a CSV")
    predict.add_argument("model", help="folder of a model, written by fit or by Spark")
    predict.add_argument("table", help="a CSV or Parquet file, or a folder of Parquet files")
    predict.add_argument(
        "--all", action="store_true", help="also all numbers of a row, such as each class's chance"
    )
    predict.add_argument(
        "--threads", type=int, default=1, help="threads to compute with (default: 1)"
    )
    onnx = commands.add_parser(
        "export_onnx", help="writes a model as ONNX, with the columns as its inputs"
    )
    onnx.add_argument("model", help="folder of a model, written by fit or by Spark")
    onnx.add_argument("output", help="the .onnx file to write")
    programs = _programs.add_commands(commands)
    return parser.parse_args(), programs


def _each_number(model, columns):
    """The columns of all that the net computes."""
    values = model.scores(columns).T.tolist()
    if model.quantiles:
        return zip((f"quantile_{share:g}" for share in model.quantiles), values)
    if model.labels:
        return zip((f"probability_{label}" for label in model.labels), values)
    return ((f"{model.output}_{place}", cells) for place, cells in enumerate(values))


def _predicted(model, columns, all_numbers):
    """The columns that are added to a table."""
    predicted, shares = model.predict(columns)
    added = {}
    if model.has_several_labels:
        added["prediction"] = [" ".join(map(str, places)) for places in predicted]
    elif not model.has_several_numbers:
        added["prediction"] = predicted
        if model.labels:
            added["probability"] = shares
    several = model.has_several_labels or model.has_several_numbers
    if all_numbers or several or model.quantiles:
        added.update(_each_number(model, columns))
    return added


def _predict(given):
    model = tables.TableModel.load(given.model)
    model.threads = given.threads
    columns = tables.read(given.table)
    added = _predicted(model, columns, given.all)
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
        fit = functools.partial(_fit.fit, program=_program())
        commands = {"fit": fit, "predict": _predict, "export_onnx": _export_onnx, **programs}
        commands[given.command](given)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        name, why = getattr(error, "filename", None), getattr(error, "strerror", None)
        print(f"cafetiere: {f'{name}: {why}' if name and why else error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cafetiere: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())
