# SPDX-License-Identifier: Apache-2.0
"""Tables in the forms that Python has, as lists of cells by name."""

import numpy as np

from cafetiere._cells import check_names


def columns_of(table):
    """The columns of a table: lists of cells by name, with None where a cell is missing.

    table: columns by name, a structured array of NumPy, a DataFrame of pandas, or what has Arrow's
    C data interface (PyArrow, Polars, DuckDB). A column is a list, an array or a Series; bytes in
    arrays of NumPy are texts in UTF-8, and what is masked is missing.
    """
    columns = {name: _cells(name, cells) for name, cells in _by_name(table).items()}
    counts = {name: len(cells) for name, cells in columns.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise ValueError(f"all columns must have as many cells; they have: {told}")
    return columns


def _by_name(table):
    if isinstance(table, dict):
        return table
    if isinstance(table, np.ndarray) and table.dtype.names:
        return {name: table[name] for name in table.dtype.names}
    if is_pandas(table):
        check_names(table.columns)
        return {name: table[name] for name in table.columns}
    if hasattr(table, "__arrow_c_stream__"):
        import pyarrow  # only who has such a table needs it

        table = pyarrow.table(table)
        check_names(table.column_names)
        return table.to_pydict()
    hint = ", as tables.read(path) does" if isinstance(table, str) else ""
    raise TypeError(f"a {type(table).__name__} is no table: give columns by name{hint}")


def _cells(name, cells):
    if not isinstance(name, str):
        raise TypeError(f"the column {name!r} has no text as its name: rename it")
    if isinstance(cells, (str, bytes)) or not hasattr(cells, "__len__"):
        raise TypeError(f"column {name!r} is a {type(cells).__name__}: give a list of its cells")
    if is_pandas(cells):
        return [None if gap else cell for cell, gap in zip(cells, cells.isna())]
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "mM":
        # Days become dates, all else times, in which Python knows no nanoseconds.
        unit = np.datetime_data(cells.dtype)[0]
        return cells.astype(f"{cells.dtype.kind}8[{'D' if unit == 'D' else 'us'}]").tolist()
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "S":
        cells = _decoded(name, cells)
    if isinstance(cells, np.ma.MaskedArray) and cells.ndim <= 2:
        return cells.tolist()  # None where masked
    if isinstance(cells, np.ma.MaskedArray):
        if np.ma.getmaskarray(cells).any():
            raise TypeError(f"column {name!r} has masked pixels: fill them, or mask no image")
        return cells.data
    return cells


def _decoded(name, cells):
    """Texts of NumPy's type S, as genfromtxt reads them."""
    try:
        texts = np.char.decode(np.ma.getdata(cells), "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"column {name!r} has the type {cells.dtype}, which is read as text, and is not UTF-8 "
            f"({error}): decode it, or give images as a list of bytes"
        ) from error
    return np.ma.array(texts, mask=np.ma.getmask(cells)) if np.ma.isMA(cells) else texts


def is_pandas(what):
    """Whether it is a DataFrame or a Series."""
    return type(what).__module__.partition(".")[0] == "pandas"
