# SPDX-License-Identifier: Apache-2.0
"""Columns of floats in Arrow's C data interface, read where they lie, with no library for it."""

import ctypes

import numpy as np

_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_capsule.restype, _capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class _Schema(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))),
    ("private_data", ctypes.c_void_p),
]


class _Array(ctypes.Structure):
    pass


_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
]


class _Stream(ctypes.Structure):
    pass


_Stream._fields_ = [
    (
        "get_schema",
        ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema)),
    ),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))),
    ("private_data", ctypes.c_void_p),
]


def is_arrow(table):
    """Whether it is a table, batch or column that tells its memory as Arrow does."""
    return hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")


def blocks(table, column):
    """The rows of a column, for each chunk an array (rows, floats) that is good for one iteration.

    column: its name, or None where the table is the column or has only that one.
    """
    if not hasattr(table, "__arrow_c_stream__"):
        schema, array = table.__arrow_c_array__()
        yield _rows(
            _at(schema, b"arrow_schema", _Schema), _at(array, b"arrow_array", _Array), column
        )
        return
    capsule = table.__arrow_c_stream__()
    stream, schema = _at(capsule, b"arrow_array_stream", _Stream), _Schema()
    _check(stream, stream.get_schema(stream, schema))
    try:
        while True:
            array = _Array()
            _check(stream, stream.get_next(stream, array))
            if not array.release:
                return
            try:
                yield _rows(schema, array, column)
            finally:
                array.release(array)
    finally:
        schema.release(schema)


def _at(capsule, name, kind):
    return kind.from_address(_capsule(capsule, name))


def _check(stream, code):
    if code:
        text = stream.get_last_error(stream)
        raise ValueError(f"the Arrow stream failed: {text.decode() if text else code}")


def _rows(schema, array, column):
    """The rows of a column of a struct array, or of the array itself."""
    offset, length = array.offset, array.length
    if schema.format == b"+s":
        names = [schema.children[i].contents.name.decode() for i in range(schema.n_children)]
        if column is None and len(names) == 1:
            column = names[0]
        if column not in names:
            raise ValueError(f"name the column to score: column= one of {', '.join(names)}")
        place = names.index(column)
        schema, array = schema.children[place].contents, array.children[place].contents
        offset += array.offset
    return _lists(schema, array, column, offset, length)


def _lists(schema, array, column, offset, length):
    kind = schema.format.decode()
    named = f"column {column!r}" if column else "the column"
    items = schema.children[0].contents.format if schema.n_children == 1 else b""
    fixed = kind.startswith("+w:")
    if items != b"f" or not (fixed or kind in ("+l", "+L")):
        raise ValueError(f"{named} has Arrow's format {kind!r}: cast it to lists of float32")
    values = array.children[0].contents
    nulls = ValueError(f"{named} has nulls: fill them, or drop their rows")
    if _has_nulls(array, offset, length):
        raise nulls
    if fixed:
        size, first = int(kind[3:]), offset * int(kind[3:])
    else:
        size, first = _width(array, kind, offset, length, named)
    first += values.offset
    if _has_nulls(values, first, length * size):
        raise nulls
    address = (values.buffers[1] or 0) + 4 * first
    if length * size == 0:
        return np.empty((length, size), np.float32)
    floats = (ctypes.c_float * (length * size)).from_address(address)
    return np.frombuffer(floats, np.float32).reshape(length, size)


def _has_nulls(array, first, count):
    """Whether any of these places is null: one bit each, 0 for a null. Without bits none is."""
    if array.null_count == 0 or not array.buffers[0] or count == 0:
        return False
    size = (first + count + 7) // 8
    bits = np.frombuffer((ctypes.c_char * size).from_address(array.buffers[0]), np.uint8)
    return not np.unpackbits(bits, bitorder="little")[first : first + count].all()


def _width(array, kind, offset, length, named):
    """Floats of each list, and where those of the first one begin."""
    width = 4 if kind == "+l" else 8
    if length == 0:
        return 0, 0
    raw = (ctypes.c_char * (width * (length + 1))).from_address(array.buffers[1] + width * offset)
    ends = np.frombuffer(raw, np.int32 if width == 4 else np.int64)
    sizes = np.diff(ends)
    if (sizes != sizes[0]).any():
        row = int(np.argmax(sizes != sizes[0]))
        raise ValueError(
            f"row {row} of {named} has {sizes[row]} floats, and the first one {sizes[0]}"
        )
    return int(sizes[0]), int(ends[0])
