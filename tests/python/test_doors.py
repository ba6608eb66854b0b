# SPDX-License-Identifier: Apache-2.0
"""Rows as they are, with texts, dates and gaps, scored by Spark and in Python without it."""

import datetime

import numpy as np
import pandas
import pyarrow

from cafetiere import tables
from cafetiere.spark.ml import CaffeClassifier

UTC = datetime.UTC


def test_rows_score_the_same_by_every_way(spark, tmp_path):
    day, moment = datetime.date(1990, 1, 1), datetime.datetime(2020, 9, 13, tzinfo=UTC)
    columns = {
        "age": [None if i % 9 == 0 else i % 71 + 0.25 for i in range(1000)],
        "visits": [None if i % 11 == 0 else i % 13 for i in range(1000)],
        "city": [None if i % 7 == 0 else f"city é {i % 23}" for i in range(1000)],
        "born": [None if i % 5 == 0 else day + datetime.timedelta(i) for i in range(1000)],
        "seen": [
            None if i % 6 == 0 else moment + datetime.timedelta(hours=i, microseconds=123)
            for i in range(1000)
        ],
        "label": [i % 3 for i in range(1000)],
    }
    schema = "age double, visits long, city string, born date, seen timestamp, label int"
    table = spark.createDataFrame(list(zip(*columns.values(), strict=True)), schema)
    model = CaffeClassifier(numWorkers=2, maxEpochs=2).fit(table)
    model.write().overwrite().save(str(tmp_path / "model"))
    expected = np.array(
        [row[0].toArray() for row in model.transform(table).select("probability").collect()]
    ).astype(np.float32)
    loaded = tables.TableModel.load(tmp_path / "model")
    del columns["label"]
    forms = {
        "lists": columns,
        "pandas": pandas.DataFrame({name: pandas.Series(c) for name, c in columns.items()}),
        "arrow": pyarrow.table(columns),
        "one row at a time": [{name: [c[i]] for name, c in columns.items()} for i in range(1000)],
    }
    for name, form in forms.items():
        many = form if isinstance(form, list) else [form]
        scores = np.concatenate([loaded.scores(each) for each in many])
        assert scores.tobytes() == expected.tobytes(), name
    loaded.save(tmp_path / "plain")
    again = tables.TableModel.load(tmp_path / "plain")
    assert again.scores(columns).tobytes() == expected.tobytes()
