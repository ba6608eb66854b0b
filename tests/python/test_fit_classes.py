# SPDX-License-Identifier: Apache-2.0
"""Labels and categories that are dates or long numbers, as both programs learn them."""

import csv
import datetime
import io

import pytest
from both_programs import both, refused, run_program, run_python
from program import needs_the_program

from cafetiere import tables

pytestmark = needs_the_program


def written(path, head, rows):
    path.write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    return path


def predicted(model, table):
    """What both predict, which is to be the same."""
    runs = [run("predict", model, table) for run in (run_program, run_python)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout
    return list(csv.DictReader(io.StringIO(runs[0].stdout)))


@pytest.mark.parametrize("end", ["", "T12:30:00"])
def test_dates_are_classes(end, tmp_path):
    days = [f"2024-0{1 + i % 2}-01{end}" for i in range(80)]
    table = written(tmp_path / "t.csv", "x,y", [f"{i % 2},{day}" for i, day in enumerate(days)])
    told = both(tmp_path, table, "--label", "y", "--epochs", "30", "--lr", "0.05")
    assert "learning y (2 classes)" in told and "t.csv: accuracy 1.0000" in told
    rows = predicted(tmp_path / "program", table)
    assert [row["prediction"] for row in rows] == days


def test_categories_that_are_dates_are_read_back_as_they_were_learned(tmp_path):
    rows = [f"2024-01-0{1 + i % 3},{'abc'[i % 3]}" for i in range(90)]
    table = written(tmp_path / "t.csv", "day,y", rows)
    flags = ("--label", "y", "--categorical", "day", "--epochs", "30", "--lr", "0.05")
    told = both(tmp_path, table, *flags)
    assert "accuracy 1.0000" in told
    assert all(row["prediction"] == row["y"] for row in predicted(tmp_path / "python", table))
    model = tables.TableModel.load(tmp_path / "program")
    assert model.types == {"day": "i32"}
    days = [datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 2), "2024-01-03"]
    assert model.predict({"day": days})[0] == ["a", "b", "c"]


def test_categories_that_are_times_do_not_depend_on_how_they_are_written(tmp_path):
    rows = [f"2024-01-01T0{i % 3}:00,{'abc'[i % 3]}" for i in range(90)]
    table = written(tmp_path / "t.csv", "at,y", rows)
    both(tmp_path, table, "--label", "y", "--categorical", "at", "--epochs", "30", "--lr", "0.05")
    other = written(tmp_path / "other.csv", "at", [f"2024-01-01 0{i}:00:00Z" for i in range(3)])
    assert [row["prediction"] for row in predicted(tmp_path / "python", other)] == ["a", "b", "c"]
    times = [datetime.datetime(2024, 1, 1, hour) for hour in range(3)]
    model = tables.TableModel.load(tmp_path / "python")
    assert model.predict({"at": times})[0] == ["a", "b", "c"]


def test_whole_numbers_that_floats_merge_are_classes_of_their_own(tmp_path):
    numbers = [9007199254740992 + i % 2 for i in range(80)]
    rows = [f"{i % 2},{number}" for i, number in enumerate(numbers)]
    table = written(tmp_path / "t.csv", "x,y", rows)
    flags = ("--epochs", "30", "--lr", "0.05")
    told = both(tmp_path, table, "--label", "y", *flags)
    assert "learning y (2 classes)" in told and "t.csv: accuracy 1.0000" in told
    assert [row["prediction"] for row in predicted(tmp_path / "program", table)] == [
        str(number) for number in numbers
    ]
    rows = [f"{number},{'ab'[i % 2]}" for i, number in enumerate(numbers)]
    table = written(tmp_path / "categories.csv", "x,y", rows)
    told = both(tmp_path, table, "--label", "y", "--categorical", "x", *flags)
    assert "categories.csv: accuracy 1.0000" in told
    assert tables.class_name(numbers[1]) == str(numbers[1])
    model, _ = tables.fit({"x": [0, 1] * 40, "y": numbers}, "y", epochs=1)
    assert model.labels == ["9007199254740992", "9007199254740993"]


def test_many_long_numbers_are_no_classes(tmp_path):
    assert not tables.is_class([str(9007199254740992 + i) for i in range(30)])
    rows = [f"{i},{9007199254740992 + i}" for i in range(30)]
    for told in refused(written(tmp_path / "t.csv", "x,y", rows), "--label", "y", "--epochs", "1"):
        assert "the label 'y' has a mean of 9.007199255e+15" in told
