# SPDX-License-Identifier: Apache-2.0
"""What both programs say of cells, of rows held back, of the last step and of broken models."""

import io
import json
import re

import pandas
import pytest
from both_programs import both, refused, run_program, run_python
from program import needs_the_program

from cafetiere import _progress, tables

pytestmark = needs_the_program


def written(path, head, rows):
    path.write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    return path


def both_predict(model, table, code=0):
    """What both print for a table, or say if they refuse it."""
    runs = [runs("predict", model, table) for runs in (run_program, run_python)]
    assert [done.returncode for done in runs] == [code, code], runs
    return [done.stderr if code else done.stdout for done in runs]


def test_booleans_are_the_numbers_that_were_trained_on(tmp_path):
    model, _ = tables.fit({"x": [True, False] * 20, "y": ["a", "b"] * 20}, "y", epochs=1)
    model.save(tmp_path / "model")
    numbers = written(tmp_path / "n.csv", "x", ["1", "0", "1", "0"])
    words = written(tmp_path / "w.csv", "x", ["true", "false", "True", "False"])
    expected, said = (
        both_predict(tmp_path / "model", numbers),
        both_predict(tmp_path / "model", words),
    )
    assert said[0] == said[1] and expected[0] == expected[1]
    scores = [
        [line.partition(",")[2] for line in text.splitlines()] for text in (said[0], expected[0])
    ]
    assert scores[0] == scores[1]
    assert tables.type_of(["true", "1"]) == "string"  # where types are found


def test_a_time_at_midnight_is_a_date():
    days = pandas.date_range("2024-01-01", periods=40)
    model, _ = tables.fit({"d": days.date, "y": ["a", "b"] * 20}, "y", epochs=1)
    expected = model.scores({"d": days.date})
    assert (model.scores(pandas.DataFrame({"d": days})) == expected).all()
    later = pandas.DataFrame({"d": days + pandas.Timedelta(hours=1)})
    with pytest.raises(ValueError, match=r"column 'd', row 0: .* is no date such as 2020-09-13"):
        model.scores(later)


def test_the_last_line_shows_the_test_of_the_last_step(tmp_path):
    rows = [f"{i * 7919 % 200},{i * i % 2}" for i in range(200)]
    table = written(tmp_path / "t.csv", "x,y", rows)
    events, stream = [], io.StringIO()
    console = _progress.Console(stream)

    def take(event):
        events.append(event)
        console(event)

    flags = {"epochs": 3, "validation": None, "patience": None}
    tables.fit(tables.read(table), "y", on_event=take, **flags)
    console.close()
    last = [event for event in events if event["event"] == "test"][-1]
    said = f"validation loss {last['outputs']['loss']:.4g}"
    assert said in stream.getvalue().splitlines()[-1]
    for runs in (run_program, run_python):
        out = ("--epochs", "3", "--out", tmp_path / "model")
        assert said in runs("fit", table, "--label", "y", *out).stderr.splitlines()[-1]


def test_the_time_left_is_that_of_the_steps_of_this_run():
    event = {"event": "progress", "step": 750, "max_iter": 1000, "first_step": 500, "seconds": 10}
    numbers = dict.fromkeys(("loss", "lr", "epoch", "rows_per_s"), 1)
    stream = io.StringIO()
    _progress.Console(stream)({**event, **numbers})
    assert "  ETA 0:10  " in stream.getvalue()


def test_why_no_rows_are_held_back(tmp_path):
    few = written(tmp_path / "few.csv", "x,y", [f"{i},{i % 2}" for i in range(60)])
    told = both(tmp_path, few, "--label", "y", "--epochs", "1")
    assert "of fewer than 100; --validation 0.1 holds a tenth back" in told
    equal = written(tmp_path / "equal.csv", "x,y", ["1,a", "2,b"] * 60)
    told = both(tmp_path, equal, "--label", "y", "--epochs", "1")
    assert "no rows were held back, as too few differ or" in told and "--validation" not in told
    for error in refused(equal, "--label", "y", "--validation", "0.1"):
        assert "none of 120 rows, as too few differ or have a class that others have" in error


def test_few_texts_in_a_column_of_numbers_are_told(tmp_path):
    rows = [
        f"{'n/a' if i == 77 else i},{'?' if i % 5 == 0 else i},{'ab'[i % 2]}" for i in range(99)
    ]
    table = written(tmp_path / "t.csv", "x,z,y", rows)
    told = both(tmp_path, table, "--label", "y", "--epochs", "1")
    line = (
        'column "x" is text, as row 78 below the header has "n/a"; empty cells are missing values'
    )
    assert told.splitlines()[1] == line and told.count("is text") == 1


def test_advice_names_flags(tmp_path):
    table = written(tmp_path / "t.csv", "x,y", [f"{i},{i * 1.5}" for i in range(60)])
    for error in refused(table, "--label", "y", "--lr", "1000000", "--layers", "64,64,64,64"):
        assert "lower the learning rate (" in error and "--lr of fit" in error, error
    classes = written(tmp_path / "c.csv", "x,y", ["1,a", "2,b"])
    for error in refused(classes, "--label", "y", "--loss", "huber"):
        assert "give --learn numbers" in error
    for error in refused(classes, "--label", "y", "--patience", "2", "--validation", "0"):
        assert "give --validation a share" in error


def test_a_label_that_is_no_number_is_refused_before_the_training(tmp_path):
    days = written(tmp_path / "d.csv", "x,y", [f"{i},2024-01-0{i % 3 + 1}" for i in range(20)])
    for error in refused(days, "--label", "y", "--learn", "numbers"):
        assert 'd.csv: column "y" has "2024-01-01" in row 1 below the header, which is no' in error
    sums = written(tmp_path / "n.csv", "x,y", [f"{i},{i}.5" for i in range(20)])
    truths = written(tmp_path / "b.csv", "x,y", ["1,2.5", "2,true"])
    for error in refused(sums, "--label", "y", "--test", truths):
        assert 'b.csv: column "y" has "true" in row 2 below the header, which is no' in error
        assert "step" not in error
    with pytest.raises(ValueError, match="the cells of label 'y' are no numbers: learn classes"):
        tables.fit({"x": [1, 2], "y": ["2024-01-01", "2024-01-02"]}, "y", classes=False)


def test_large_numbers_beside_small_ones_name_classes(tmp_path):
    rows = [f"{i},{value}" for i, value in enumerate(["1e20", "1", "1.0"] * 40)]
    table = written(tmp_path / "t.csv", "x,y", rows)
    assert "learning y (2 classes)" in both(tmp_path, table, "--label", "y", "--epochs", "1")
    columns = {"x": [*range(40)], "y": [2**60, 1.0, 1, "1.00"] * 10}
    model, _ = tables.fit(columns, "y", epochs=1)
    assert re.findall(r'value: "(.*)"', model.net) == ["1", str(2**60)]


def test_a_table_without_a_column_is_told_what_it_has(tmp_path):
    model, _ = tables.fit({"x": ["1", "2"] * 20, "y": ["a", "b"] * 20}, "y", epochs=1)
    model.save(tmp_path / "model")
    table = written(tmp_path / "semi.csv", "x;y", ["1;a"])
    for error in both_predict(tmp_path / "model", table, code=1):
        assert re.search("no column .x.; there are x;y; the cells of a CSV are separated by", error)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "table.json is no JSON object"),
        ({"thresholds": ["a", 0.5]}, 'has "a" among its thresholds, which is no number'),
        ({"quantiles": [True]}, "has true among its quantiles, which is no number"),
        ({"quantiles": 5}, "has 5 as its quantiles, which is no list"),
        ({"types": None}, 'table.json has no "types" of the model\'s columns'),
        ({"types": {"x": 1}}, 'table.json has no "types" of the model\'s columns'),
        ({"thresholds": None, "quantiles": None}, None),
    ],
)
def test_models_with_a_broken_table(text, said, tmp_path):
    model, _ = tables.fit({"x": ["1", "2"] * 20, "y": ["a", "b"] * 20}, "y", epochs=1)
    model.save(tmp_path / "model")
    path = tmp_path / "model/table.json"
    if isinstance(text, dict):
        text = json.dumps({**json.loads(path.read_text(encoding="utf-8")), **text})
    path.write_text(text, encoding="utf-8")
    table = written(tmp_path / "t.csv", "x", ["1"])
    for told in both_predict(tmp_path / "model", table, code=1 if said else 0):
        assert said is None or (said in told and str(tmp_path / "model") in told), told


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_python_takes_no_flag_cut_short(command):
    done = run_python(command, "a", "b", "--thread", "3")
    assert done.returncode == 2 and "--thread" in done.stderr
