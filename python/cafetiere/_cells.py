# SPDX-License-Identifier: Apache-2.0
"""Columns of tables: their types, and their cells as the engine reads them."""

import csv
import datetime
import decimal
import difflib
import errno
import itertools
import math
import numbers
import os
import pathlib
import re
import struct
import uuid
from collections import Counter

import numpy as np

_EPOCH = datetime.date(1970, 1, 1)
_START = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT = re.compile(
    _DAY.pattern.join("()") + r"(?:[T ](\d\d:\d\d)(?:(:\d\d)(?:[.,](\d+))?)?([+-]\d\d:\d\d|Z)?)?",
    re.ASCII,
)
_MOST_NAMES = 30  # of columns, in an error
_MOST_CLASSES = 20  # of a label of numbers, unless one says that it names classes
_PACKED = {"f64": struct.Struct("<Id"), "i32": struct.Struct("<Ii"), "i64": struct.Struct("<Iq")}
KINDS = {"f64": "NUMBER", "i32": "DATE", "i64": "TIMESTAMP", "string": "CATEGORY"}
TYPES = {kind: name for name, kind in KINDS.items()}
TYPES["IMAGE"] = "image"
KINDS.update({"texts": "CATEGORY", "image": "IMAGE", "flags": "FLAGS", "numbers": "NUMBER"})
# Where the engine's type has another name.
_ENGINE = {"texts": "string", "image": "u8", "flags": "f64", "numbers": "f64"}
_FILE = (bytes, bytearray)  # an image in its file's form
_NUMBERS = (numbers.Real, decimal.Decimal, np.bool_)
_AS_TEXT = (str, *_NUMBERS, datetime.date, datetime.time, uuid.UUID)
_TEXT_END = b"\x1f"  # what the engine wants behind each text of a list


def _separator_hint(names):
    """For a header of one cell in which something else seems to separate the names; else ""."""
    has_another = len(names) == 1 and re.search(r"[;\t|]", names[0])
    return "; the cells of a CSV are separated by commas" if has_another else ""


def check_columns(names, columns):
    """An error for the first name of no column."""
    for name in names:
        if name in columns:
            continue
        there = ", ".join([*columns][:_MOST_NAMES])
        if len(columns) > _MOST_NAMES:
            there += f" and {len(columns) - _MOST_NAMES} more"
        there += _separator_hint([*columns])
        if near := difflib.get_close_matches(name, columns, 1):
            there += f"; did you mean {near[0]!r}?"
        raise ValueError(f"there is no column {name!r}; there are {there}")


def read(path):
    """The columns of a CSV with a header, or of Parquet: lists by name; None where empty.

    Parquet is a file of that name, or a folder, all files of which are read.
    """
    if pathlib.Path(path).suffix == ".parquet" or pathlib.Path(path).is_dir():
        return _read_parquet(path)
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file, strict=True)
        try:
            names, *cells = _records(rows)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8: {error}") from error
        except (csv.Error, ValueError) as error:
            line = f":{rows.line_num}" if rows.line_num else ""
            raise ValueError(f"{path}{line}: {error}") from error
    return dict(zip(names, map(list, zip(*cells)))) if cells else {name: [] for name in names}


def _read_parquet(path):
    if not pathlib.Path(path).exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if pathlib.Path(path).is_dir() and not any(pathlib.Path(path).rglob("*.parquet")):
        raise ValueError(f"{path} is a folder without Parquet files; name a file in it")
    try:
        import pyarrow.parquet  # only who has such a file needs it
    except ImportError as error:
        raise ImportError(
            f"{path} is Parquet, which pyarrow reads, and that is not installed: "
            "python -m pip install pyarrow"
        ) from error
    try:
        file = pyarrow.parquet.ParquetDataset(path)
    except (OSError, ValueError) as error:  # those of Arrow are such
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from error
    check_names(file.schema.names, path)
    table = file.read()
    return {name: table[name].to_pylist() for name in table.column_names}


def check_names(names, path=None):
    """An error for a name that two columns have."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        where = "" if path is None else f"{path}: "
        raise ValueError(f"{where}two columns are called {twice[0]!r}; rename one")


def _records(rows):
    """The records of a CSV, of which the first names the columns, without empty lines."""
    names = None
    for row in filter(None, rows):
        if names is None:
            names = row
            check_names(names)
            yield names
            continue
        if len(row) != len(names):
            hint = _separator_hint(names)
            raise ValueError(f"{len(row)} cells, and the header has {len(names)}{hint}")
        yield [cell or None for cell in row]
    if names is None:
        raise ValueError("there is no line that names the columns")


def _number(cell):
    # Python would pass over underscores, and read the digits of other scripts.
    if isinstance(cell, str) and ("_" in cell or not cell.isascii()):
        raise ValueError("not a number")
    return float(cell)


def _days(cell):
    if isinstance(cell, datetime.datetime):
        raise ValueError("a time of day")
    if isinstance(cell, str) and not _DAY.fullmatch(cell):  # of ISO's forms this one
        raise ValueError("not a date")
    day = cell if isinstance(cell, datetime.date) else datetime.date.fromisoformat(cell)
    return (day - _EPOCH).days


def _micros(cell):
    time = cell if isinstance(cell, datetime.datetime) else _moment(cell)
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.timezone.utc)
    return (time - _START) // _MICROSECOND


def _moment(text):
    """A text such as 2026-07-01T12:30:00.5+02:00, made a form that Pythons before 3.11 read."""
    parts = _MOMENT.fullmatch(text)
    if not parts:
        raise ValueError("not a time")
    day, minute, second, fraction, zone = parts.groups(default="")
    zone = "+00:00" if zone == "Z" else zone
    time = f"{day}T{minute or '00:00'}{second or ':00'}.{fraction[:6]:0<6}{zone}"
    return datetime.datetime.fromisoformat(time)


def _text(cell):
    if not isinstance(cell, _AS_TEXT):
        raise TypeError("neither a text nor what has one form as text")
    return _as_text(cell).encode()


def _as_text(cell):
    """A time in the form in which texts have it."""
    return cell.isoformat() if isinstance(cell, datetime.datetime) else str(cell)


def _texts(cell):
    if isinstance(cell, str):
        raise TypeError("one text, where there is to be a list")
    texts = [
        text if isinstance(text, str) else class_name(text) for text in cell if text is not None
    ]
    # What ends a text is a blank within one, as it is to Spark.
    return b"".join(text.encode().replace(_TEXT_END, b" ") + _TEXT_END for text in texts)


def _image(cell):
    """An image file; of pixels, gray or red, green and blue, one without compression."""
    if isinstance(cell, _FILE):
        return bytes(cell)
    shape = np.shape(cell)
    is_gray = len(shape) == 2
    if not is_gray and shape[2:] != (3,):
        raise TypeError(f"an array of shape {shape}, where there is to be an image")
    if cell.dtype != np.uint8:
        raise TypeError(f"pixels of type {cell.dtype}: they must be uint8")
    return b"P%d\n%d %d\n255\n" % (5 if is_gray else 6, shape[1], shape[0]) + cell.tobytes()


def _flags(cell):
    return struct.pack(f"<{len(cell)}d", *cell)


def _numbers(cell):
    """A list or an array, in which None is a gap, or a vector of Spark ML."""
    if hasattr(cell, "toArray"):
        cell = cell.toArray()
    return _flags([math.nan if number is None else number for number in cell])


_READ = {"f64": _number, "i32": _days, "i64": _micros, "string": _text}
_OTHERS = {"texts": _texts, "image": _image, "flags": _flags}  # which type_of() sees
_OF_SPARK = {"numbers": _numbers}  # in models that Spark has saved


_TRUTHS = {"true": 1, "True": 1, "false": 0, "False": 0}
_WORDS = {
    "f64": "number",
    "i32": "date such as 2020-09-13",
    "i64": "moment such as 2020-09-13T12:26:40",
    "texts": "list of texts",
    "flags": "list of 0 and 1",
    "numbers": "list of numbers",
}


def _number_or_truth(cell):
    """What Spark and pandas write of a column of booleans was trained on as numbers."""
    return _TRUTHS[cell] if isinstance(cell, str) and cell in _TRUTHS else _number(cell)


def _day_or_midnight(cell):
    """A date, or a time at its begin, as pandas has dates."""
    is_time = isinstance(cell, datetime.datetime)
    if is_time and cell.tzinfo is None and cell.time() == datetime.time():
        return _days(cell.date())
    return _days(cell)


_ENCODED = {**_READ, **_OTHERS, **_OF_SPARK, "f64": _number_or_truth, "i32": _day_or_midnight}


def is_gap(cell):
    """None and NaN: Python's tables have either where a cell is missing."""
    return cell is None or (isinstance(cell, (float, np.floating)) and cell != cell)


def type_of(cells):
    """How a column is encoded: the first type that all of its cells can be read as."""
    there = [cell for cell in cells if not is_gap(cell)]
    if any(isinstance(cell, _FILE) or getattr(cell, "ndim", 0) > 1 for cell in there):
        return "image"
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


def class_type(cells):
    """How a column is encoded whose cells name classes or categories.

    Numbers of which floats do not tell each from the next are texts then.
    """
    kind = type_of(cells)
    if kind == "f64" and any(_is_beyond_floats(_number(c)) for c in cells if not is_gap(c)):
        return "string"
    return kind


def odd_cell(cells):
    """The place of the first cell that is no number, date or time, where nine of ten cells are.

    None if fewer are.
    """
    there = [(place, cell) for place, cell in enumerate(cells) if not is_gap(cell) and cell != ""]
    most = len(there) // 10
    for kind in _PACKED:
        each = (place for place, cell in there if not _reads_as(kind, cell))
        odd = list(itertools.islice(each, most + 1))
        if 0 < len(odd) <= most:
            return odd[0]
    return None


def _reads_as(kind, cell):
    try:
        _READ[kind](cell)
    except (ValueError, TypeError):
        return False
    return True


def _is_beyond_floats(number):
    return 2**53 <= abs(number) < math.inf


def types_of(columns, names, of_classes):
    """How columns are encoded, by name; of_classes: those whose cells name classes."""
    return {
        name: (class_type if name in of_classes else type_of)(columns.get(name, []))
        for name in names
    }


def encoded(cells, kind, name):
    """Each cell as the engine wants it: its size, then its bytes; no bytes where it is missing."""
    read_cell = _ENCODED[kind]
    for number, cell in enumerate(cells):
        if is_gap(cell):
            yield b"\0\0\0\0"
            continue
        try:
            value = read_cell(cell)
        except (ValueError, TypeError, struct.error) as error:
            fault = f"{cell!r} is no {_WORDS.get(kind)}"
            if kind == "string":
                fault = f"a {type(cell).__name__} is no text, number or date: make one of it"
            elif kind == "image":
                fault = str(error)
            raise ValueError(f"column {name!r}, row {number}: {fault}") from error
        if packed := _PACKED.get(kind):
            yield packed.pack(packed.size - 4, value)
        else:
            yield struct.pack("<I", len(value)) + value


def rows_apart(columns, types):
    """A table's rows, each as the engine wants it."""
    check_columns(types, columns)
    cells = [encoded(columns[name], kind, name) for name, kind in types.items()]
    return [b"".join(row) for row in zip(*cells)]


def rows_of(columns, types):
    """A table's rows as the engine wants them, and how many they are."""
    rows = rows_apart(columns, types)
    return b"".join(rows), len(rows)


def schema_of(types):
    """The schema of the rows of such columns, as the engine wants it."""
    columns = [{"name": name, "type": _ENGINE.get(kind, kind)} for name, kind in types.items()]
    return {"columns": columns, "id": ""}


def class_name(cell):
    """The label of a cell: numbers in their shortest form, as the engine names them."""
    try:
        number = _number(cell)
    except (TypeError, ValueError):
        return _as_text(cell)
    if _is_beyond_floats(number):
        return str(cell)
    return str(int(number)) if number.is_integer() else repr(number)


def is_class(cells):
    """Whether a label names classes: texts, or few whole numbers."""
    if type_of(cells) != "f64":
        return True
    there = [cell for cell in cells if not is_gap(cell)]
    return all(_number(cell).is_integer() for cell in there) and (
        len({class_name(cell) for cell in there}) <= _MOST_CLASSES
    )
