# SPDX-License-Identifier: Apache-2.0
"""Models of tables as ONNX: raw columns go in, and onnxruntime says what the engine says."""

import datetime
import json
import pathlib
import random
import sys

import numpy as np
import pytest

from cafetiere import import_onnx, tables
from cafetiere._library import call_for_bytes

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "tables"))

ROWS = 1000
DAY = datetime.date(1999, 11, 20)


def table(seed, cities=60):
    """Columns of every kind, a tenth of their cells missing; other seeds bring other values."""
    drawn = random.Random(seed)

    def column(make):
        return [None if drawn.random() < 0.1 else make() for _ in range(ROWS)]

    columns = {
        "age": column(lambda: drawn.randrange(20, 80)),
        "income": column(lambda: drawn.gauss(3e4, 1e4)),
        "city": column(lambda: f"Zürich {drawn.randrange(cities)}"),
        "paid": column(lambda: drawn.choice(["card", "cash", "bill"] + ["gold"] * (seed > 1))),
        "since": column(lambda: DAY + datetime.timedelta(days=drawn.randrange(500))),
        "at": column(
            lambda: datetime.datetime(2023, 12, 20)
            + datetime.timedelta(seconds=drawn.randrange(30 * 86400), microseconds=1)
        ),
        "zone": column(lambda: drawn.randrange(12)),
        "member": column(lambda: drawn.random() < 0.3),
    }
    columns["score"] = [(age or 50) * 1.5 + drawn.gauss(0, 1) for age in columns["age"]]
    columns["buys"] = [
        "yes" if score > 75 + 20 * (city or "").endswith("7") else "no"
        for score, city in zip(columns["score"], columns["city"], strict=True)
    ]
    return columns


def inputs(model, columns):
    """What a model's inputs take of a table: arrays of a row for each cell, as their types say."""
    feeds = {}
    for given in model.get_inputs():
        width = given.shape[1]
        rows = [
            [cell] if isinstance(cell, str) or not hasattr(cell, "__len__") else list(cell)
            for cell in columns[given.name]
        ]
        rows = [row + [None] * (width - len(row)) for row in rows]
        if given.type == "tensor(string)":
            texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
            feeds[given.name] = np.array(texts, object)
        elif given.type == "tensor(int64)":
            first = next(filter(None, columns[given.name]))
            unit = "us" if isinstance(first, datetime.datetime) else "D"
            feeds[given.name] = np.array(rows, f"datetime64[{unit}]").astype(np.int64)
        else:
            feeds[given.name] = np.array(rows, np.float64)  # None becomes NaN
    return feeds


def session(path):
    return runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def probabilities(model, columns):
    """Of all classes, from the engine: `predict` tells that of the class alone."""
    said, share = model.predict(columns)
    of_first = [
        p if label == model.labels[0] else 1 - p for label, p in zip(said, share, strict=True)
    ]
    return said, np.array(of_first)


@pytest.mark.parametrize("members", [1, 3])
def test_raw_rows_give_the_same_classes(members, tmp_path):
    learned, _ = tables.fit(table(1), "buys", categorical=["zone"], epochs=4, members=members)
    learned.export_onnx(tmp_path / "model.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"), full_check=True)
    scorer = session(tmp_path / "model.onnx")
    kinds = {given.name: given.type for given in scorer.get_inputs()}
    assert kinds == {
        **dict.fromkeys(["age", "income", "score", "member"], "tensor(double)"),
        **dict.fromkeys(["city", "paid", "zone"], "tensor(string)"),
        **dict.fromkeys(["since", "at"], "tensor(int64)"),
    }
    others = table(2, cities=80)  # cities and a way to pay that nobody has seen
    said, of_first = probabilities(learned, others)
    labels, shares = scorer.run(["predictedLabel", "probability"], inputs(scorer, others))
    assert shares.shape == (ROWS, 2)
    assert labels.tolist() == said
    assert np.abs(shares[:, 0] - of_first).max() < 1e-5
    one = {name: values[:1] for name, values in inputs(scorer, others).items()}
    assert np.abs(scorer.run(["probability"], one)[0] - shares[:1]).max() < 1e-6
    with pytest.raises(RuntimeError, match="input age is of type DOUBLE.* was saved to"):
        import_onnx(tmp_path / "model.onnx")


def test_thresholds_decide_about_classes(tmp_path):
    columns = table(1)
    learned, _ = tables.fit(columns, "buys", features=["age", "city"], epochs=2)
    plain, _ = learned.predict(columns)
    learned.thresholds = [0.9, 0.1]
    learned.export_onnx(tmp_path / "model.onnx")
    scorer = session(tmp_path / "model.onnx")
    labels = scorer.run(["predictedLabel"], inputs(scorer, columns))[0].tolist()
    assert labels == learned.predict(columns)[0] != plain


def test_raw_rows_give_the_same_numbers(tmp_path):
    columns = table(1)
    names = ["age", "since", "at"]
    learned, _ = tables.fit(columns, "score", features=names, epochs=4, layers=[])
    learned.export_onnx(tmp_path / "model.onnx")
    scorer = session(tmp_path / "model.onnx")
    others = table(2)
    (values,) = scorer.run(["prediction"], inputs(scorer, others))
    assert np.allclose(values[:, 0], learned.predict(others)[0], rtol=1e-5, atol=1e-4)


def same_numbers(learned, columns, path):
    """Whether onnxruntime computes the numbers, or the labels' probabilities, of the engine."""
    learned.export_onnx(path)
    scorer = session(path)
    (values,) = scorer.run([learned.output], inputs(scorer, columns))
    scores = learned.scores(columns)
    assert values.shape == scores.shape
    return np.allclose(values, scores, rtol=1e-5, atol=1e-5 * max(1, np.abs(scores).max()))


@pytest.mark.parametrize(
    "options", [{"loss": "huber"}, {"loss": "quantile", "quantiles": (0.1, 0.5, 0.9)}]
)
def test_losses_for_numbers(options, tmp_path):
    names = ["age", "income", "city"]
    learned, _ = tables.fit(table(1), "score", features=names, epochs=2, **options)
    assert same_numbers(learned, table(2), tmp_path / "model.onnx")


def test_several_labels(tmp_path):
    columns, others = table(1), table(2)
    for rows in (columns, others):
        rows["both"] = [
            [float((age or 0) > 50), float(paid == "card")]
            for age, paid in zip(rows["age"], rows["paid"], strict=True)
        ]
    learned, _ = tables.fit(columns, "both", features=["age", "paid"], epochs=2)
    assert same_numbers(learned, others, tmp_path / "model.onnx")


@pytest.mark.parametrize(
    ("learner", "label", "output"),
    [
        ("CaffeClassifier", "member", "probability"),
        ("CaffeRegressor", "array(a, place[1])", "prediction"),
    ],
)
def test_arrays_and_vectors_of_spark(learner, label, output, spark, tmp_path):
    from pyspark.ml.functions import array_to_vector

    from cafetiere.spark import ml

    table = spark.range(ROWS).selectExpr(
        "id % 13 a",
        "id % 3 = 0 member",
        "if(id % 7 = 0, null, id % 2 = 0) paid",
        "if(id % 9 = 0, null, array(id % 5, if(id % 4 = 1, double('NaN'), id), id / 1000)) sizes",
        "array(id % 6, id / 2) place",
        "if(id % 8 = 0, null, array(id % 10, id % 12)) kinds",
    )
    table = table.selectExpr("*", f"{label} label").withColumn("place", array_to_vector("place"))
    names = ["paid", "sizes", "place", "kinds"]
    learned = getattr(ml, learner)(
        featuresCols=names, categoricalCols=["kinds"], idCol="", numWorkers=1, maxEpochs=3
    ).fit(table)
    learned.exportOnnx((tmp_path / "model.onnx").as_uri())
    scorer = session(tmp_path / "model.onnx")
    rows = learned.transform(table).collect()
    feeds = inputs(scorer, {name: [row[name] for row in rows] for name in names})
    assert feeds["sizes"].shape == (ROWS, 3) and feeds["kinds"].shape == (ROWS, 2)
    (values,) = scorer.run([output], feeds)
    assert np.allclose(values, [row[output] for row in rows], rtol=1e-5, atol=1e-5)


def test_an_embedding_that_ended_as_posterior_means(tmp_path):
    drawn = random.Random(3)

    def places(rows):
        place = [drawn.randrange(100) for _ in range(rows)]
        label = [int(drawn.random() < (0.8 if p % 3 else 0.3)) for p in place]
        return {"place": [f"place {p}" for p in place], "label": label}

    learned, _ = tables.fit(places(6000), "label", epochs=2)
    assert "posterior {" in learned.net
    assert same_numbers(learned, places(ROWS), tmp_path / "model.onnx")


def test_the_generated_table_of_the_benches(tmp_path):
    import generated

    (columns, _), (others, _) = generated.generate(20_000, generated.places_of(20_000))
    learned, _ = tables.fit(columns, "label", epochs=2)
    assert "posterior {" in learned.net
    assert same_numbers(learned, others, tmp_path / "model.onnx")


@pytest.mark.parametrize("name", ["breast-cancer", "digits", "diabetes"])
def test_small_tables_of_the_benches(name, tmp_path):
    pytest.importorskip("sklearn", reason="needs scikit-learn, which ./test mlflow has")
    import small

    load, classes = small.TABLES[name]
    x, y = load(return_X_y=True)
    learner = small.Cafetiere(classes)
    learner.fit(x[::2], y[::2])
    assert same_numbers(learner.model, learner.columns(x[1::2]), tmp_path / "model.onnx")


@pytest.mark.parametrize("year", [1899, 1900, 1969, 1999, 2000, 2001, 2003, 2004, 2100])
def test_dates_of_all_years(tmp_path, year):
    first = datetime.date(year, 1, 1)
    columns = {
        "day": [first + datetime.timedelta(days=number) for number in range(-2, 370)],
        "y": list(range(372)),
    }
    columns["at"] = [
        datetime.datetime.combine(day, datetime.time(23, 59, 59)) for day in columns["day"]
    ]
    learned, _ = tables.fit(columns, "y", epochs=1, layers=[])
    learned.export_onnx(tmp_path / "model.onnx")
    scorer = session(tmp_path / "model.onnx")
    (values,) = scorer.run(["prediction"], inputs(scorer, columns))
    assert np.allclose(values[:, 0], learned.predict(columns)[0], rtol=1e-5, atol=1e-3)


def test_columns_may_be_called_as_blobs_are(tmp_path):
    columns = {"features": [1, 2, None, 4], "probability": ["a", "b", "", None], "y": [0, 1, 0, 1]}
    learned, _ = tables.fit(columns, "y", epochs=1)
    learned.export_onnx(tmp_path / "model.onnx")
    scorer = session(tmp_path / "model.onnx")
    assert {given.name for given in scorer.get_inputs()} == {"features", "probability"}
    said = scorer.run(["predictedLabel"], inputs(scorer, columns))[0]
    assert said.tolist() == learned.predict(columns)[0]


def test_what_has_no_form_is_named(tmp_path):
    learned, _ = tables.fit(table(1), "buys", features=["age"], epochs=1)
    learned.net = learned.net.replace("InnerProduct", "Nothing", 1)
    with pytest.raises((RuntimeError, ValueError), match="Nothing"):
        learned.export_onnx(tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_an_onnx_file_is_hidden_layers_and_their_first_weights(tmp_path):
    columns = table(1)
    first, _ = tables.fit(columns, "buys", features=["age", "income"], epochs=8, layers=[12])
    plain = encoded_net(first)
    (tmp_path / "net.onnx").write_bytes(plain)
    options = {"features": ["age", "income"], "net": str(tmp_path / "net.onnx")}
    tuned, _ = tables.fit(columns, "buys", epochs=1, lr=0.0, **options)
    assert tuned.predict(columns) == first.predict(columns)  # the whole net, as it was
    assert 'name: "score"' not in tuned.net
    numbers, _ = tables.fit(columns, "score", epochs=1, **options)  # its scores, as a layer
    assert 'name: "score"' in numbers.net and 'name: "hidden1/Gemm"' in numbers.net
    with pytest.raises((RuntimeError, ValueError), match="hidden1"):
        tables.fit(columns, "buys", epochs=1, **{**options, "features": ["age"]})


def encoded_net(model):
    """The layers of a model of numbers behind their encoding, as ONNX; their names are others."""
    net = model.net.replace('"score"', '"total"')
    options = {"net": net, "stages": ["predict"], "shapes": {"features": [1, 4]}}
    text = json.dumps(options).encode()
    weights = model.weights.replace(b"\x05score", b"\x05total")
    return call_for_bytes("cft_onnx_export", text, weights, len(weights))


def test_a_net_spec_gives_hidden_layers():
    pytest.importorskip("google.protobuf")
    from cafetiere import NetSpec, layers

    spec = NetSpec()
    spec.rows = layers.Input()
    spec.wide = layers.InnerProduct(spec.rows, num_output=9, weight_filler={"type": "xavier"})
    spec.bend = layers.TanH(spec.wide)
    model, _ = tables.fit(table(1), "buys", features=["age"], net=spec, epochs=1)
    assert 'type: "TanH"' in model.net and 'name: "hidden1"' not in model.net


def test_lists_of_texts_are_summed_and_exported(tmp_path):
    drawn = random.Random(3)
    words = [f"word {number}" for number in range(40)]
    lists = [[drawn.choice(words) for _ in range(drawn.randrange(7))] for _ in range(ROWS)]
    lists[5], lists[6] = None, ["", None, "word 1"]
    liked = [sum(word in words[:12] for word in cell or ()) > 1 for cell in lists]
    columns = {"words": lists, "good": ["yes" if like else "no" for like in liked]}
    learned, _ = tables.fit(columns, "good", epochs=60)
    said, _ = learned.predict(columns)
    right = sum(a == b for a, b in zip(said, columns["good"], strict=True))
    assert right > 0.97 * ROWS
    turned = [cell and cell[::-1] for cell in lists]  # a list's order does not count
    assert learned.predict({"words": turned})[0] == said
    learned.export_onnx(tmp_path / "model.onnx")
    scorer = session(tmp_path / "model.onnx")
    assert scorer.run(["predictedLabel"], inputs(scorer, columns))[0].tolist() == said


@pytest.mark.parametrize("colours", [(), (3,)])
def test_images_go_in_as_planes_of_pixels(tmp_path, colours):
    drawn = np.random.default_rng(2).integers(0, 256, (80, 8, 8, *colours), np.uint8)
    columns = {
        "photo": list(drawn),
        "x": list(range(80)),
        "bright": ["yes" if pixels[:4].mean() > 127 else "no" for pixels in drawn],
    }
    learned, _ = tables.fit(columns, "bright", epochs=2)
    learned.export_onnx(tmp_path / "model.onnx")
    model = session(tmp_path / "model.onnx")
    planes = drawn[..., ::-1].transpose(0, 3, 1, 2) if colours else drawn[:, None]
    feeds = {"photo": planes, "x": np.arange(80.0)[:, None]}
    assert {given.name: given.type for given in model.get_inputs()}["photo"] == "tensor(uint8)"
    ours = learned.scores(columns)
    assert any(
        np.allclose(out, ours, atol=1e-5)
        for out in model.run(None, feeds)
        if np.shape(out) == ours.shape
    )
