# SPDX-License-Identifier: Apache-2.0
"""A table has the same columns in each of the forms that Python has for it."""

import datetime
import io

import numpy as np
import pandas
import pyarrow
import pytest

from cafetiere import tables

DAYS = [datetime.date(2026, 7, day) for day in range(1, 31)]
TIMES = [datetime.datetime(2026, 7, day, 12, 30, 0, 500000) for day in range(1, 31)]
TABLE = {
    "age": [None if row % 7 == 3 else row for row in range(30)],
    "city": [None if row % 5 == 1 else "ab"[row % 2] for row in range(30)],
    "day": DAYS,
    "time": TIMES,
    "y": ["no", "yes"] * 15,
}


def arrays():
    return {
        "age": np.array([np.nan if age is None else age for age in TABLE["age"]]),
        "city": [np.nan if city is None else city for city in TABLE["city"]],
        "day": np.array(DAYS, "M8[D]"),
        "time": np.array(TIMES, "M8[ns]"),
        "y": np.array(TABLE["y"]),
    }


def frame():
    frame = pandas.DataFrame({**TABLE, "age": pandas.array(TABLE["age"], dtype="Int64")})
    return frame.assign(city=frame.city.astype("category"))


def test_all_forms_give_the_same_weights():
    forms = {
        "arrays": arrays(),
        "frame": frame(),
        "series": dict(frame().items()),
        "arrow": pyarrow.table(TABLE),
    }
    model = tables.fit(TABLE, "y", epochs=2)[0]
    scores = model.scores(TABLE)
    for form, table in forms.items():
        same = tables.fit(table, "y", epochs=2)[0]
        assert (same.types, same.weights) == (model.types, model.weights), form
        assert np.array_equal(model.scores(table), scores), form
    assert model.types == {"age": "f64", "city": "string", "day": "i32", "time": "i64"}


def test_bytes_are_texts_and_what_is_masked_is_missing():
    read = np.genfromtxt(
        io.BytesIO("a,b\n1,é\n,y\n3,\n".encode()), delimiter=",", names=True, dtype="f8,S9",
        usemask=True, encoding="bytes",
    )  # fmt: skip
    expected = {"a": [1.0, None, 3.0], "b": ["é", "y", None]}
    columns = tables.columns_of(read)
    assert {name: list(cells) for name, cells in columns.items()} == expected
    assert list(tables.columns_of({"b": np.array(["é".encode(), b"y"])})["b"]) == ["é", "y"]
    assert {name: tables.type_of(cells) for name, cells in columns.items()} == {
        "a": "f64", "b": "string",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "error", "said"),
    [
        (None, TypeError, "a NoneType is no table: give columns by name"),
        ("visitors.csv", TypeError, r"a str is no table: .*, as tables\.read\(path\) does"),
        ({"x": [1, 2, 3], "y": ["a", "b"]}, ValueError, "as many cells; they have: x 3, y 2"),
        ({"x": 1.5, "y": ["a"]}, TypeError, "column 'x' is a float: give a list of its cells"),
        ({"x": "ab", "y": ["a", "b"]}, TypeError, "column 'x' is a str"),
        ({0: [1, 2], "y": ["a", "b"]}, TypeError, "column 0 has no text as its name"),
        ({"x": [1j, 2], "y": ["a", "b"]}, ValueError, "'x', row 0: a complex is no text, number"),
        ({"x": np.array([1, 2], "m8[s]"), "y": ["a", "b"]}, ValueError, "a timedelta is no text"),
        ({"x": np.ones((2, 3, 3)), "y": ["a", "b"]}, ValueError, "'x', row 0: .* must be uint8"),
        (pandas.DataFrame([[1, 2], [3, 4]], columns=["x", "x"]), ValueError, "two columns are"),
        (pyarrow.table([[1, 2], [3, 4]], names=["x", "x"]), ValueError, "two columns are"),
        ({"x": np.array([b"\xff"]), "y": ["a"]}, ValueError, "'x' has the type .S1, .* list of"),
    ],
)
def test_what_is_no_table_of_cells_is_refused(table, error, said):
    with pytest.raises(error, match=said):
        tables.fit(table, "y", epochs=1)


def test_a_text_of_a_list_may_contain_what_ends_texts_to_the_engine():
    words = [["a\x1fb", "c"], ["c"], ["d"]] * 20
    model, _ = tables.fit({"words": words, "y": ["u", "v", "v"] * 20}, "y", epochs=1)
    assert model.scores({"words": [["a b", "c"]]}).tobytes() == (
        model.scores({"words": [["a\x1fb", "c"]]}).tobytes()
    )
    assert '"a b"' in model.net and '"b"' not in model.net


def test_masked_cells_of_lists_are_missing():
    cells = np.ma.array([["a", "b"], ["c", "d"]], mask=[[0, 1], [0, 0]])
    assert tables.columns_of({"x": cells})["x"] == [["a", None], ["c", "d"]]
    pictures = np.ma.zeros((2, 4, 4), np.uint8)
    assert not np.ma.isMA(tables.columns_of({"x": pictures})["x"])
    pictures[0, 0, 0] = np.ma.masked
    with pytest.raises(TypeError, match="column 'x' has masked pixels"):
        tables.columns_of({"x": pictures})
