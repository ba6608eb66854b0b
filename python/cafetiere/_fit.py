# SPDX-License-Identifier: Apache-2.0
"""`python -m cafetiere fit`: its flags, what it writes, and what it says, as cli/fit.cc."""

import json
import os
import pathlib

from cafetiere import _cores, tables
from cafetiere._cells import check_columns, types_of
from cafetiere._fit_summary import (
    Scored,
    folder_lines,
    is_class,
    is_empty,
    table_line,
    text_lines,
    training_lines,
)
from cafetiere._library import call_for_text
from cafetiere._progress import Console


def _names(text):
    return [name for name in text.split(",") if name]


def _numbers(text):
    return [int(units) for units in _names(text)]


def _shares(text):
    return [float(share) for share in _names(text)]


def add_fit(commands):
    """Adds the command with its flags."""
    fit = commands.add_parser(
        "fit", help="trains a model that predicts a column of a table from the others"
    )
    fit.add_argument("table", help="a CSV or Parquet file, or a folder of Parquet files")
    fit.add_argument("--label", required=True, help="the column to learn")
    fit.add_argument(
        "--out",
        default="",
        help="folder for the model and report.html (default: TABLE.model beside the table)",
    )
    fit.add_argument("--test", help="a table with the same columns to test on")
    fit.add_argument(
        "--features",
        type=_names,
        default=[],
        help="A,B,..: columns to learn from (default: all others)",
    )
    fit.add_argument("--drop", type=_names, default=[], help="A,B,..: columns not to learn from")
    fit.add_argument(
        "--categorical",
        type=_names,
        default=[],
        help="A,B,..: columns of numbers that are categories",
    )
    fit.add_argument(
        "--learn",
        choices=["classes", "numbers"],
        help="what the label is; by default, text and few different whole numbers are classes",
    )
    fit.add_argument(
        "--layers",
        type=_numbers,
        default=[64, 32],
        help="units of each hidden layer (default: 64,32)",
    )
    fit.add_argument(
        "--net",
        default="",
        help="hidden layers instead of --layers: a prototxt, or an ONNX file with its weights",
    )
    fit.add_argument(
        "--members",
        type=int,
        default=1,
        help="number of nets with these layers, whose scores are averaged (default: 1)",
    )
    _add_training(fit)
    fit.add_argument("--weight", help="the column with the weight of each row in the loss")
    fit.add_argument(
        "--class-weights", default="", help='"balanced", or pairs such as "spam=5, ham=1"'
    )
    fit.add_argument("--loss", choices=["squared", "huber", "quantile"], default="squared")
    fit.add_argument(
        "--huber-delta",
        type=float,
        default=1.0,
        help="errors beyond this many standard deviations of the label are linear in huber "
        "(default: 1)",
    )
    fit.add_argument(
        "--quantiles",
        type=_shares,
        default=[],
        help="the quantiles to learn, such as 0.1,0.5,0.9, with --loss quantile",
    )


def _add_training(fit):
    fit.add_argument("--epochs", type=int, default=50, help="passes over the table (default: 50)")
    fit.add_argument("--batch", type=int, default=256, help="rows per step (default: 256)")
    fit.add_argument(
        "--lr",
        type=float,
        default=0.003,
        help="learning rate at the beginning (default: 0.003)",
    )
    fit.add_argument("--seed", type=int, default=1, help="seed of everything random (default: 1)")
    fit.add_argument(
        "--threads",
        type=int,
        default=_cores.available(),
        help="threads to compute with (default: all cores)",
    )
    fit.add_argument(
        "--validation",
        type=float,
        help="share of the rows to hold out and test on once per epoch (default: 0.1 for tables of "
        "100 rows or more); 0: none",
    )
    fit.add_argument(
        "--patience",
        type=int,
        help="number of consecutive epochs without improvement after which training ends, with "
        "the weights of the best epoch (default: 10 for tables of 1,500 rows or more); 0: train "
        "all epochs",
    )
    fit.add_argument(
        "--tol",
        type=float,
        default=0.0,
        help="by how much the loss must fall to count as an improvement (default: 0)",
    )


def output_folder(table, out):
    """The folder for the model: `out`, or without one TABLE.model beside the table.

    An error: it cannot be written into; it holds files that are no model of a table or, where `out`
    does not name it, anything.
    """
    # "." has a name only in full.
    path = pathlib.Path(table)
    folder = pathlib.Path(out or (path if path.name else path.resolve()).with_suffix(".model"))
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder for the model by --out")
    if folder.exists() and not out and any(folder.iterdir()):
        raise ValueError(
            f"{folder} is there already: --out {folder} replaces the model in it, another folder "
            "keeps it"
        )
    for name in ("net.prototxt", "model.caffemodel", "report.html"):
        if (folder / name).exists() and not (folder / "table.json").exists():
            raise ValueError(
                f"{folder} holds {name}, which is of no model of a table and would be lost; name "
                "another folder by --out"
            )
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"cannot write into {there}; name a folder for the model by --out")
    return str(folder)


def _features(given, columns):
    """The columns to learn from."""
    named = [given.label, *given.drop, *given.features, *given.categorical]
    check_columns([*named, *filter(None, [given.weight])], columns)
    left = {*given.drop} if given.features else {*given.drop, given.label, given.weight}
    features = [name for name in given.features or columns if name not in left]
    for name in {given.label, given.weight} & {*features}:
        raise ValueError(f"column {name!r} is the label or the weight: take it out of the features")
    if not features:
        raise ValueError("there is no column to learn from")
    if "" in features:
        raise ValueError(
            f"{given.table}: column {[*columns].index('') + 1} has no name; name it in the first "
            "line, or the columns to learn from by --features"
        )
    return features


def _check_targets(given, columns):
    """A label or a weight must be there in each row, and classes are learned from two on."""
    label = columns[given.label]
    if not label:
        raise ValueError(f"{given.table}: there are no rows below the header")
    for name in filter(None, (given.label, given.weight)):
        gaps = [place for place, cell in enumerate(columns[name]) if is_empty(cell)]
        if gaps:
            raise ValueError(
                f'{given.table}: column "{name}" is empty in {len(gaps)} of {len(label)} rows, '
                f"first in row {gaps[0] + 1} below the header; fill these cells, or take the rows "
                "out"
            )
    if not is_class(given, label):
        _check_numbers(given.table, given.label, label)
    elif len({*map(str, label)}) == 1:
        raise ValueError(
            f'{given.table}: column "{given.label}" is "{label[0]}" in each row, so there is '
            "nothing to learn; name another column by --label, or add rows of another class"
        )


def _check_numbers(path, name, cells):
    """An error for the first cell of a label, if there is one, that is no number."""
    if tables.type_of(cells) in ("f64", "texts"):  # several labels in a cell
        return
    for row, cell in enumerate(cells):
        if not is_empty(cell) and tables.type_of([cell]) != "f64":
            raise ValueError(
                f'{path}: column "{name}" has "{cell}" in row {row + 1} below the header, which is '
                "no number, as which it is learned; correct it, or give --learn classes"
            )


def _read_test(given, columns, features):
    """The tables that --test names; what is wrong with one is said before the training."""
    if not given.test:
        return {}
    table = tables.read(given.test)
    check_columns([given.label], table)
    if not is_class(given, columns[given.label]):
        _check_numbers(given.test, given.label, table[given.label])
    tables.rows_of(table, types_of(columns, features, given.categorical))
    return {given.test: table}


def _net(path):
    if not path or pathlib.Path(path).suffix == ".onnx":
        return path
    return pathlib.Path(path).read_text(encoding="utf-8")


def _write_report(given, result, events, tests):
    """Writes report.html beside the model."""
    title = f"{pathlib.Path(given.table).name}: {given.label}"
    lines = "".join(json.dumps(event) + "\n" for event in events)
    shown = json.dumps({**result, "title": title, "tested": tests})
    page = call_for_text("cft_report", lines.encode(), shown.encode())
    (pathlib.Path(given.out) / "report.html").write_text(page, encoding="utf-8")


def _in_flags(text):
    """An error with the command's flags, where it has arguments of fit()."""
    return text.replace("classes: learn numbers", "classes: give --learn numbers").replace(
        ": give validation a share", ": give --validation a share"
    )


def _learn(given, columns, features):
    """The model, its result and the events of its training, whose progress is shown."""
    events, console = [], Console()

    def take(event):
        events.append(event)
        console(event)

    try:
        model, result = tables.fit(
            columns,
            given.label,
            features=features,
            categorical=given.categorical,
            classes=None if given.learn is None else given.learn == "classes",
            layers=given.layers,
            net=_net(given.net),
            members=given.members,
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
            on_event=take,
        )
    except (ValueError, RuntimeError) as error:
        raise ValueError(_in_flags(str(error))) from error
    finally:
        console.close()
    return model, result, events


def fit(given, program):
    """Runs the command; `program` is what predicts."""
    given.out = output_folder(given.table, given.out)
    columns = tables.read(given.table)
    features = _features(given, columns)
    _check_targets(given, columns)
    to_test = {given.table: columns, **_read_test(given, columns, features)}
    try:
        pathlib.Path(given.out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"cannot make {given.out}: {error.strerror}; name a folder for the model by --out"
        ) from error
    print(table_line(given, columns, features))
    print(*(f"{line}\n" for line in text_lines(columns, features)), sep="", end="", flush=True)
    model, result, events = _learn(given, columns, features)
    model.save(given.out)
    for line in training_lines(given, model.net, result, len(columns[given.label])):
        print(line)
    tests, held_out = {}, result.pop("held_out")
    for path, table in to_test.items():
        scored = Scored(model, table)
        if held_out and not tests:
            tests[f"{len(held_out)} rows held back"] = scored.some(held_out)
        tests[path] = scored.all()
    for of, sentence in tests.items():
        print(f"{of}: {sentence}")
    _write_report(given, result, events, tests)
    for line in folder_lines(given.out, program):
        print(line)
