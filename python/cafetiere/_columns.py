# SPDX-License-Identifier: Apache-2.0
"""Tables in the forms that Python has, as lists of cells by name."""

import numpy as np

from cafetiere._cells import check_names


def columns_of(table):
    """The columns of a table: lists of cells by name, with None where a cell is missing.

    table: columns by name, a structured array of NumPy, a DataFrame of pandas, or what has Arrow's
    C data interface (PyArrow, Polars, DuckDB). A column is a list, an array or a Series.
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
    if _is_pandas(table):
        check_names(table.columns)
        return {name: table[name] for name in table.columns}
    if hasattr(table, "__arrow_c_stream__"):
        import pyarrow  # only who has such a table needs it

        return pyarrow.table(table).to_pydict()
    hint = ", as tables.read(path) does" if isinstance(table, str) else ""
    raise TypeError(f"a {type(table).__name__} is no table: give columns by name{hint}")


def _cells(name, cells):
    if not isinstance(name, str):
        raise TypeError(f"the column {name!r} has no text as its name: rename it")
    if isinstance(cells, (str, bytes)) or not hasattr(cells, "__len__"):
        raise TypeError(f"column {name!r} is a {type(cells).__name__}: give a list of its cells")
    if _is_pandas(cells):
        return [None if gap else cell for cell, gap in zip(cells, cells.isna())]
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "mM":
        # Days become dates, all else times, in which Python knows no nanoseconds.
        unit = np.datetime_data(cells.dtype)[0]
        return cells.astype(f"{cells.dtype.kind}8[{'D' if unit == 'D' else 'us'}]").tolist()
    return cells


def _is_pandas(what):
    return type(what).__module__.partition(".")[0] == "pandas"
