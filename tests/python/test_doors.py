# SPDX-License-Identifier: Apache-2.0
"""Rows as they are, with texts, dates and gaps, scored through each door.

Spark's three, a JVM, Python, C and the program: the same bytes in the same order.
"""

import csv
import datetime
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import zlib

import numpy as np
import pandas
import pyarrow
import pytest
from program import PROGRAM, ROOT
from pyspark.ml.functions import array_to_vector

from cafetiere import _library, tables
from cafetiere.spark.ml import CaffeClassifier, CaffeRegressor

UTC = datetime.UTC
ROWS = 1000
FEATURES = ["age", "visits", "city", "born", "seen"]


def visitors(rows=ROWS):
    """The rows by column; doors.c makes the same."""
    day, moment = datetime.date(1990, 1, 1), datetime.datetime(2020, 9, 13, tzinfo=UTC)
    return {
        "age": [None if i % 9 == 0 else i % 71 + 0.25 for i in range(rows)],
        "visits": [None if i % 11 == 0 else i % 13 for i in range(rows)],
        "city": [None if i % 7 == 0 else f"city é {i % 23}" for i in range(rows)],
        "born": [None if i % 5 == 0 else day + datetime.timedelta(i) for i in range(rows)],
        "seen": [
            None if i % 6 == 0 else moment + datetime.timedelta(hours=i, microseconds=123)
            for i in range(rows)
        ],
    }


class Doors:
    """A model that was saved, and what it is asked."""

    def __init__(self, spark, folder):
        self.spark, self.folder, self.columns = spark, folder, visitors()
        self.saved = str(folder / "model")
        schema = (
            "id int, age double, visits long, city string, born date, seen timestamp, label int"
        )
        cells = [range(ROWS), *self.columns.values(), (i % 3 for i in range(ROWS))]
        rows = list(zip(*cells, strict=True))
        self.table = spark.createDataFrame(rows, schema).repartition(4, "id")
        self.model = CaffeClassifier(
            numWorkers=2, maxEpochs=2, idCol="id", featuresCols=FEATURES
        ).fit(self.table.sortWithinPartitions("id"))
        self.model.write().overwrite().save(self.saved)
        self.loaded = tables.TableModel.load(self.saved)

    @staticmethod
    def _in_order(rows):
        return [row.p for row in sorted(rows, key=lambda row: row.id)]

    def transform(self):
        rows = self.model.transform(self.table).selectExpr("id", "probability p").collect()
        return [vector.toArray() for vector in self._in_order(rows)]

    def sql(self):
        self.table.createOrReplaceTempView("visitors")
        struct = f"struct({', '.join(FEATURES)})"
        call = f"cafetiere.predict('{self.saved}', {struct}, 'probability')"
        return self._in_order(self.spark.sql(f"SELECT id, {call} p FROM visitors").collect())

    def streaming(self):
        path = str(self.folder / "rows")
        self.table.write.parquet(path)
        stream = self.spark.readStream.schema(self.table.schema).parquet(path)
        scored = self.model.transform(stream).selectExpr("id", "probability p")
        query = scored.writeStream.format("memory").queryName("scored").start()
        try:
            query.processAllAvailable()
            rows = self.spark.table("scored").collect()
        finally:
            query.stop()
        return [vector.toArray() for vector in self._in_order(rows)]

    def jvm(self):
        """Objects of Java, given to a TableScorer."""
        java = self.spark._jvm
        types = java.cafetiere.core.score.CellType
        columns = java.java.util.LinkedHashMap()
        for name, kind in zip(
            FEATURES, ["DOUBLE", "LONG", "TEXT", "DATE", "TIMESTAMP"], strict=True
        ):
            columns.put(name, types.valueOf(kind))
        net = self.loaded.net + tables._PREDICT
        scorer = java.cafetiere.core.score.TableScorer(
            net, self.loaded.weights, columns, "probability"
        )

        def cell(value):
            if isinstance(value, datetime.datetime):
                return java.java.time.Instant.parse(value.isoformat().replace("+00:00", "Z"))
            if isinstance(value, datetime.date):
                return java.java.time.LocalDate.parse(value.isoformat())
            return java.java.lang.Long.valueOf(value) if isinstance(value, int) else value

        scores = []
        for row in zip(*self.columns.values(), strict=True):
            cells = java.java.util.ArrayList()
            for value in row:
                cells.add(cell(value))
            scores.append(list(scorer.score(cells)))
        scorer.close()
        return scores

    def lists(self):
        return self.loaded.scores(self.columns)

    def pandas(self):
        series = {name: pandas.Series(cells) for name, cells in self.columns.items()}
        return self.loaded.scores(pandas.DataFrame(series))

    def arrow(self):
        return self.loaded.scores(pyarrow.table(self.columns))

    def one_row_at_a_time(self):
        rows = ({name: [c[i]] for name, c in self.columns.items()} for i in range(ROWS))
        return np.concatenate([self.loaded.scores(row) for row in rows])

    def saved_by_python(self):
        self.loaded.save(self.folder / "plain")
        return tables.TableModel.load(self.folder / "plain").scores(self.columns)

    def in_c(self):
        """doors.c, which makes the rows itself."""
        compiler = shutil.which("cc")
        if not compiler:
            pytest.skip("no C compiler")
        library = pathlib.Path(_library.library()._name)
        program, options, scores = (self.folder / name for name in ("doors", "options", "scores"))
        subprocess.run(
            [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}",
             ROOT / "tests/python/doors.c", "-o", program, library, f"-Wl,-rpath,{library.parent}"],
            check=True,
        )  # fmt: skip
        kinds = ["f64", "i64", "string", "i32", "i64"]
        columns = [{"name": n, "type": k} for n, k in zip(FEATURES, kinds, strict=True)]
        told = {"net": self.loaded.net + tables._PREDICT, "outputs": ["probability"]}
        told["schema"] = {"columns": columns, "id": ""}
        options.write_text(json.dumps(told), encoding="utf-8")
        weights = pathlib.Path(self.saved) / "net/data/model.caffemodel"
        subprocess.run([program, options, weights, scores], check=True)
        return np.frombuffer(scores.read_bytes(), np.float32)

    def _program(self, model):
        """The program, on a CSV: what it prints."""
        if PROGRAM is None:
            pytest.skip("the program has not been built")
        path = self.folder / "rows.csv"
        with open(path, "w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(FEATURES)
            out.writerows(zip(*self.columns.values(), strict=True))
        done = subprocess.run(
            [PROGRAM, "predict", model, path, "--all"], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        said = list(csv.DictReader(done.stdout.decode().splitlines()))
        assert [row["city"] or None for row in said] == self.columns["city"]
        classes = self.loaded.labels
        scores = np.array([[np.float32(row[f"probability_{c}"]) for c in classes] for row in said])
        assert [row["prediction"] for row in said] == [classes[i] for i in scores.argmax(axis=1)]
        return scores

    def program(self):
        return self._program(self.saved)

    def program_on_what_python_saved(self):
        self.loaded.save(self.folder / "plain")
        return self._program(self.folder / "plain")


def test_rows_score_the_same_by_every_way(spark, tmp_path):
    doors = Doors(spark, tmp_path)
    expected = np.array(doors.transform(), np.float32)
    assert expected.shape == (ROWS, 3)
    for name in ("sql", "streaming", "jvm", "lists", "pandas", "arrow", "one_row_at_a_time",
                 "saved_by_python", "in_c", "program", "program_on_what_python_saved"):  # fmt: skip
        scores = np.asarray(getattr(doors, name)(), np.float32)
        assert scores.tobytes() == expected.tobytes(), name


def test_the_program_prints_what_python_does(tmp_path):
    if PROGRAM is None:
        pytest.skip("the program has not been built")
    columns = visitors()
    columns["city"][3] = 'a "town", and\nmore'
    columns["label"] = [i % 3 for i in range(ROWS)]
    tables.fit(columns, "label", epochs=1)[0].save(tmp_path / "model")
    path = tmp_path / "rows.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(columns)
        out.writerows(zip(*columns.values(), strict=True))
    for flags in ([], ["--all", "--threads", "2"]):
        arguments = ["predict", tmp_path / "model", path, *flags]
        python = subprocess.run(
            [sys.executable, "-m", "cafetiere", *arguments], cwd=ROOT / "python",
            capture_output=True, check=True,
        )  # fmt: skip
        program = subprocess.run([PROGRAM, *arguments], capture_output=True, check=True)
        assert program.stdout == python.stdout
        assert (b",probability_0,probability_1,probability_2\n" in program.stdout) == bool(flags)


def numbers(model, row):
    return row.prediction, None


def all_numbers(model, row):
    return row.prediction.toArray().tolist(), None


def a_class(model, row):
    return row.predictedLabel, row.probability[model.labels.index(row.predictedLabel)]


def several_labels(model, row):
    return [int(place) for place in row.predictedLabel], row.probability.toArray().tolist()


QUANTILES = {"labelCol": "spent", "loss": "quantile", "quantiles": [0.1, 0.5, 0.9]}
CLASSES = {"labelCol": "kind", "thresholds": [0.95, 0.0, 0.05]}
LABELS = {"labelCol": "both", "thresholds": [0.2, 0.6]}
NUMBERS = {"labelCols": ["spent", "nights"]}


@pytest.mark.parametrize(
    ("learner", "params", "said", "head"),
    [
        (CaffeRegressor, QUANTILES, numbers, "prediction,quantile_0.1,quantile_0.5,quantile_0.9"),
        (CaffeRegressor, NUMBERS, all_numbers, "prediction_0,prediction_1"),
        (CaffeClassifier, CLASSES, a_class, "prediction,probability"),
        (CaffeClassifier, LABELS, several_labels, "prediction,probability_0,probability_1"),
        (
            CaffeClassifier,
            {"labelCol": "both"},
            several_labels,
            "prediction,probability_0,probability_1",
        ),
    ],
)
def test_what_spark_saved_predicts_the_same_without_spark(
    learner, params, said, head, spark, tmp_path
):
    table = spark.range(600).selectExpr(
        "id", "id % 31 a", "concat('city ', id % 7) city", "id % 31 * 2.5 spent", "id % 5 nights",
        "id % 3 kind", "array(int(id % 31 < 9), int(id % 7 > 3)) both",
    )  # fmt: skip
    learned = learner(
        featuresCols=["a", "city"], idCol="id", numWorkers=1, maxEpochs=2, **params
    ).fit(table)
    learned.write().overwrite().save(str(tmp_path / "model"))
    rows = learned.transform(table).orderBy("id").collect()
    columns = {name: [row[name] for row in rows] for name in ("a", "city")}
    model = tables.TableModel.load(tmp_path / "model")
    predicted, shares = model.predict(columns)
    for number, row in enumerate(rows):
        share = None if shares is None else shares[number]
        assert (predicted[number], share) == said(model, row)
    if model.quantiles:
        of_rows = list(zip(*model.predict_quantiles(columns), strict=True))
        assert of_rows == [tuple(row.quantiles.toArray()) for row in rows]
    model.save(tmp_path / "plain")
    same = tables.TableModel.load(tmp_path / "plain")
    assert (same.predict(columns), same.label) == ((predicted, shares), model.label)
    printed_the_same(tmp_path, columns, f"a,city,{head}")
    compress(tmp_path / "model")
    assert tables.TableModel.load(tmp_path / "model").predict(columns) == (predicted, shares)
    large = tmp_path / "model/net/data/model.caffemodel"  # as Spark writes it beyond 2 GiB
    whole = large.read_bytes()
    hdf5 = _library.call_for_bytes("cft_weights_hdf5", whole, len(whole))
    large.with_name("model.caffemodel.h5").write_bytes(hdf5)
    large.unlink()
    assert tables.TableModel.load(tmp_path / "model").predict(columns) == (predicted, shares)


def test_vectors_are_scored_without_spark(spark, tmp_path):
    table = spark.range(300).selectExpr(
        "id", "id % 3 y", "array(id % 7, if(id % 5 = 0, double('nan'), id % 5), id * 0.5) v"
    )
    table = table.withColumn("v", array_to_vector("v"))
    params = {"labelCol": "y", "idCol": "id", "featuresCol": "v", "numWorkers": 1, "maxEpochs": 2}
    learned = CaffeClassifier(**params).fit(table)
    learned.write().overwrite().save(str(tmp_path / "model"))
    model = tables.TableModel.load(tmp_path / "model")
    rows = learned.transform(table).orderBy("id").collect()
    shares = [row.probability.toArray().tolist() for row in rows]
    lists = [[None if x != x else x for x in row.v.toArray().tolist()] for row in rows]
    assert model.scores({"v": [row.v for row in rows]}).tolist() == shares
    assert model.scores({"v": lists}).tolist() == shares
    with pytest.raises(ValueError, match="column 'v', row 0: 3 is no list of numbers"):
        model.scores({"v": [3]})


def compress(model):
    """As where a cluster compresses all that is written; what Python cannot read is refused."""
    [first] = (model / "metadata").glob("part-*")
    [second] = (model / "net/metadata").glob("part-*")
    unknown = first.with_name(first.name + ".lz4")
    unknown.write_bytes(b"")
    text = first.read_bytes()
    first.unlink()
    with pytest.raises(ValueError, match=r"is compressed as \.lz4, and Python without Spark reads"):
        tables.TableModel.load(model)
    unknown.unlink()
    first.with_name(first.name + ".gz").write_bytes(gzip.compress(text))
    second.with_name(second.name + ".deflate").write_bytes(zlib.compress(second.read_bytes()))
    second.unlink()


def printed_the_same(folder, columns, head):
    """By Python, and by the program if it has been built, of what Spark and Python saved."""
    with open(folder / "rows.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(columns)
        out.writerows(zip(*columns.values(), strict=True))
    commands = [[sys.executable, "-m", "cafetiere"], *([[PROGRAM]] if PROGRAM else [])]
    for flags in ([], ["--all"]):
        arguments = [["predict", folder / name, folder / "rows.csv"] for name in ("model", "plain")]
        printed = {
            subprocess.run(
                [*command, *given, *flags], cwd=ROOT / "python", capture_output=True, check=True
            ).stdout
            for command in commands
            for given in arguments
        }
        assert len(printed) == 1
        first = printed.pop().decode().partition("\n")[0]
        assert first.startswith(head) if flags else first == head


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("age,city\n1,Oslo\n", 'rows.csv: there is no column "born"; there are age, city'),
        ("born,age\n2020-02-30,1\n", 'line 2, column "born": "2020-02-30" is no date'),
        ("born,age\n2020-02-03,1,2\n", "line 2: 3 cells, and the head has 2"),
        ('born,age\n"2020-02-03,1\n', "line 2: a quote is not closed"),
        ("born,age,prediction\n", 'has a column "prediction" already'),
        ("", "there is no line that names the columns"),
    ],
)
def test_the_program_tells_what_is_wrong_with_a_table(text, said, small_model, tmp_path):
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [PROGRAM, "predict", small_model, tmp_path / "rows.csv"],
        capture_output=True, check=False, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert said in done.stderr, done.stderr


@pytest.fixture(scope="module")
def small_model(tmp_path_factory):
    if PROGRAM is None:
        pytest.skip("the program has not been built")
    columns = visitors()
    few = {name: columns[name] for name in ("age", "born")}
    few["label"] = [i % 2 for i in range(ROWS)]
    folder = tmp_path_factory.mktemp("small")
    tables.fit(few, "label", epochs=1)[0].save(folder)
    return folder
