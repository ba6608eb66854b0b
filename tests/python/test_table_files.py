# SPDX-License-Identifier: Apache-2.0
"""python -m cafetiere: tables in files are learned and predicted without Spark."""

import csv
import datetime
import io
import os
import pathlib
import re
import resource
import subprocess
import sys

import numpy as np
import pytest

from cafetiere import tables

ROOT = pathlib.Path(__file__).parents[2]
VISITORS = (
    ROOT / "examples/tables/visitors.csv"
)  # nobody can be right more often than 9 times of 10


def run(*arguments, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "cafetiere", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    folder = tmp_path_factory.mktemp("halves")
    head, *rows = VISITORS.read_text().splitlines()
    parts = folder / "train.csv", folder / "test.csv"
    for path, part in zip(parts, (rows[:450], rows[450:]), strict=True):
        path.write_text("\n".join([head, *part, ""]))
    return parts


def test_classes_are_learned_and_predicted(halves, tmp_path):
    train, test = halves
    fit = ("fit", train, "--label", "buys", "--drop", "id,spent", "--test", test)
    told = run(*fit, "--out", tmp_path / "model")
    accuracies = [float(share) for share in re.findall(r"csv: accuracy ([\d.]+)", told)]
    assert len(accuracies) == 2 and accuracies[0] > 0.84 and accuracies[1] > 0.74
    rows = list(csv.DictReader(io.StringIO(run("predict", tmp_path / "model", test))))
    right = sum(row["prediction"] == row["buys"] for row in rows)
    assert right / len(rows) == pytest.approx(accuracies[1], abs=1e-4)
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rows)
    assert [row["id"] for row in rows] == [str(number) for number in range(450, 600)]
    again = run(*fit, "--out", tmp_path / "again")
    timeless = [re.sub(r"[\d.]+ s,", "s,", text).partition("\nmodel:")[0] for text in (told, again)]
    assert timeless[0] == timeless[1]
    weights = [(tmp_path / name / "model.caffemodel").read_bytes() for name in ("model", "again")]
    assert weights[0] == weights[1]


def test_numbers_are_learned_in_their_units(halves, tmp_path):
    train, test = halves
    told = run(
        *("fit", train, "--label", "spent", "--features", "city,visits"),
        *("--test", test, "--out", tmp_path / "model"),
    )
    errors = [float(error) for error in re.findall(r"csv: .* error ([\d.]+)", told)]
    assert len(errors) == 2 and max(errors) < 4  # they vary by 22, and 2 is drawn


def test_types_are_found():
    assert tables.type_of(["1", "-2.5e3", None]) == "f64"
    assert tables.type_of(["2026-07-01", None]) == "i32"
    assert tables.type_of(["2026-07-01T12:30:00"]) == "i64"
    assert tables.type_of(["1_0"]) == "string"
    assert tables.type_of([datetime.datetime(2026, 7, 1)]) == "i64"
    assert tables.is_class(["1", "2"]) and not tables.is_class(["1.5"])
    assert not tables.is_class([str(number) for number in range(30)])
    assert tables.class_name("1.0") == "1" and tables.class_name("1.5") == "1.5"


def test_parquet(halves, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = tables.read(halves[0])
    columns["since"] = [datetime.date.fromisoformat(day) for day in columns["since"]]
    columns["age"] = [age and int(age) for age in columns["age"]]
    parquet.write_table(pyarrow.table(columns), tmp_path / "train.parquet")
    models = [
        tables.fit(tables.read(path), "buys", features=["age", "city", "since"], epochs=1)[0]
        for path in (halves[0], tmp_path / "train.parquet")
    ]
    assert models[0].weights == models[1].weights


def test_what_is_wrong_is_said(halves, tmp_path):
    train, _ = halves
    out = ("--out", tmp_path / "model")
    assert "there is no column 'bays'" in run("fit", train, "--label", "bays", *out, code=1)
    short = tmp_path / "short.csv"
    short.write_text("a,b\n1,2\n3\n")
    assert "short.csv:3: 1 cells, and the header has 2" in run(
        "fit", short, "--label", "a", *out, code=1
    )
    gap = tmp_path / "gap.csv"
    gap.write_text("a,b\n1,x\n3,\n")
    said = 'gap.csv: column "b" is empty in 1 of 2 rows, first in row 2 below the header'
    assert said in run("fit", gap, "--label", "b", *out, code=1)
    assert "there is no model of a table in" in run("predict", tmp_path / "none", gap, code=1)
    model, _ = tables.fit({"a": ["1", "2"] * 20, "b": ["x", "y"] * 20}, "b", epochs=1)
    with pytest.raises(ValueError, match="column 'a', row 1: 'much' is no number"):
        model.predict({"a": ["1", "much"]})
    assert model.predict({"a": []}) == ([], [])
    assert len(model.predict({"a": [None, "7"]})[0]) == 2


def test_early_stopping_weights_and_losses(halves, tmp_path):
    train, test = halves
    quantiles = ("--loss", "quantile", "--quantiles", "0.25,0.5,0.75", "--out", tmp_path / "model")
    held_out = ("--validation", "0.3", "--patience", "3", "--epochs", "200", "--lr", "0.03")
    told = run("fit", train, "--label", "spent", "--features", "city,visits", *quantiles, *held_out)
    best = re.search(r"after epoch (\d+); 3 epochs were no better", told)
    assert best and f"\n{(int(best[1]) + 3) * 2} steps" in told, told
    rows = list(csv.DictReader(io.StringIO(run("predict", tmp_path / "model", test))))

    def share_below(column):
        below = [float(row["spent"]) < float(row[column]) for row in rows]
        return sum(below) / len(below)

    shares = [share_below(f"quantile_{share}") for share in ("0.25", "0.5", "0.75")]
    assert shares == sorted(shares) and 0.05 < shares[0] < 0.45 and 0.55 < shares[2] < 0.95
    assert all(row["prediction"] == row["quantile_0.5"] for row in rows)
    columns = tables.read(train)
    with pytest.raises(ValueError, match="give validation a share"):
        tables.fit(columns, "buys", patience=1)
    with pytest.raises(ValueError, match="column 'age' is the label or the weight"):
        tables.fit(columns, "buys", features=["age"], weight="age")
    with pytest.raises(RuntimeError, match='column "age".*the weight is missing'):
        tables.fit(columns, "buys", weight="age")
    even = tables.fit(columns, "buys", class_weights="no=7, yes=7", epochs=1)[0]
    assert even.predict(columns) == tables.fit(columns, "buys", epochs=1)[0].predict(columns)
    heavy = tables.fit(columns, "buys", features=["age"], epochs=3, class_weights="yes=50")[0]
    assert heavy.predict(columns)[0].count("yes") > 0.9 * len(columns["age"])


def three_classes():
    columns = {"x": [row % 7 for row in range(90)], "y": ["abc"[row % 3] for row in range(90)]}
    return tables.fit(columns, "y", epochs=1)[0], columns


def test_thresholds_divide_and_are_saved(tmp_path):
    model, columns = three_classes()
    model.save(tmp_path)
    assert "thresholds" not in (tmp_path / "table.json").read_text()
    scores = model.scores(columns)
    for thresholds in ([0.8, 0.1, 0.3], [1, 0, 1]):
        model.thresholds = thresholds
        model.save(tmp_path)
        predicted, shares = tables.TableModel.load(tmp_path).predict(columns)
        for row, label, share in zip(scores.astype(float), predicted, shares, strict=True):
            parts = [p / t if t else np.inf for p, t in zip(row, thresholds, strict=True)]
            assert label == "abc"[np.argmax(parts)]
            assert share == row["abc".index(label)]
    assert set(predicted) == {"b"}
    model.thresholds = [1, 2]
    with pytest.raises(ValueError, match="the model has 2 thresholds for 3 classes or labels"):
        model.predict(columns)


def test_a_model_stays_whole_where_another_cannot_be_written(tmp_path):
    model, columns = three_classes()
    model.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = tables.fit(columns, "y", layers=[300], epochs=1)[0]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(other.weights) - 1, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            other.save(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_model_of_keys_says_what_to_save(tmp_path):
    (tmp_path / "nets").mkdir()
    assert f"the model in {tmp_path} has a net for each key: save that of a key" in run(
        "predict", tmp_path, VISITORS, code=1
    )


def pictures(rows, size=8):
    """Gray arrays, of which a half is bright, beside a number."""
    made = np.random.default_rng(1).integers(0, 40, (rows, size, size), np.uint8)
    for number, pixels in enumerate(made):
        pixels[:, (size // 2 if number % 2 else 0) :][:, : size // 2] += 150
    sides = ["right" if number % 2 else "left" for number in range(rows)]
    return {"photo": list(made), "number": [n % 5 for n in range(rows)], "side": sides}


def test_images_are_learned_beside_numbers(tmp_path):
    columns = pictures(120)
    learned, _ = tables.fit(columns, "side", epochs=8, batch=16)
    assert learned.predict(columns)[0] == columns["side"]
    learned.save(tmp_path / "model")
    loaded = tables.TableModel.load(tmp_path / "model")
    assert loaded.types["photo"] == "image"
    files = [b"P5 8 8 255\n" + pixels.tobytes() for pixels in columns["photo"]]
    again = loaded.scores({**columns, "photo": files})
    assert (again == learned.scores(columns)).all()
    columns["photo"][3] = columns["photo"][3][:4]
    with pytest.raises(RuntimeError, match="images of several sizes, from 4 x 8 to 8 x 8"):
        tables.fit(columns, "side", epochs=1)
    small, _ = tables.fit(columns, "side", epochs=1, image_size=(4, 6))
    assert "shape: 1 shape: 4 shape: 6" in " ".join(small.net.split())
    columns["photo"][3] = np.zeros((8, 8))
    with pytest.raises(ValueError, match="column 'photo', row 3: pixels of type float64"):
        loaded.scores(columns)


def test_several_labels_and_what_they_count():
    columns = {"x": list(range(100)), "labels": [[n % 2, int(n % 5 == 0)] for n in range(100)]}
    given = {"epochs": 60, "layers": [], "lr": 0.1}
    even, _ = tables.fit(columns, "labels", class_weights="balanced", **given)
    assert even.has_several_labels
    plain, _ = tables.fit(columns, "labels", **given)
    heavy, _ = tables.fit(columns, "labels", class_weights="1=16", **given)
    chances = [model.scores(columns).mean(axis=0)[1] for model in (plain, even, heavy)]
    assert chances[0] < 0.35 < chances[1] < 0.65 < chances[2]
    places, shares = heavy.predict(columns)
    assert places[7] == [place for place in (0, 1) if shares[7][place] > 0.5]
