# SPDX-License-Identifier: Apache-2.0
"""A training's course in Python: tables, a picture, a page, and the bar of a notebook."""

import json
import threading

import pytest
from program import needs_the_program

pytest.importorskip("pandas")
from cafetiere.spark.history import History
from cafetiere.spark.progress import follow

pytestmark = needs_the_program

EVENTS = [
    {"event": "log", "text": "begins"},
    {"event": "progress", "step": 1, "max_iter": 4, "epoch": 0.5, "loss": 2.5, "rows_per_s": 100},
    {"event": "test", "step": 2, "outputs": {"accuracy": 0.5, "loss": 2.0}},
    {"event": "progress", "step": 4, "max_iter": 4, "epoch": 2.0, "loss": None, "rows_per_s": 90},
    {"event": "test", "step": 4, "outputs": {"accuracy": 0.75, "loss": 1.5}},
]


def test_tables():
    history = History(EVENTS, {})
    frame = history.frame()
    assert list(frame["step"]) == [1, 4] and frame["loss"][0] == 2.5
    assert "event" not in frame.columns
    assert list(history.tests()["accuracy"]) == [0.5, 0.75]
    assert len(History([], {}).frame()) == 0 and len(History([], {}).tests()) == 0


def test_a_picture():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    axes = History(EVENTS, {}).plot()
    lines = {line.get_label(): list(line.get_xdata()) for line in axes.get_lines()}
    assert lines == {"loss": [1, 4], "test accuracy": [2, 4], "test loss": [2, 4]}
    assert History([], {}).plot(axes) is axes


def test_a_page():
    hostile = [*EVENTS, {"event": "test", "step": 4, "outputs": {"</script><b>": 1.0}}]
    history = History(hostile, {"steps": 4})
    assert "<svg" in history.report()
    shown = history._repr_html_()
    assert shown.startswith("<iframe") and shown.count("<") == 2, "the page is one attribute"
    assert "&lt;svg" in shown


class Bar:
    """What tqdm would draw."""

    made = []

    def __init__(self, total, initial, desc, unit, leave):
        self.total, self.desc, self.n, self.open = total, desc, initial, True
        self.unit = unit
        self.made.append(self)

    def set_postfix(self, figures):
        self.figures = figures

    def close(self):
        self.open = False


def test_a_bar_for_each_run():
    barrier = {"run": "a", "title": "barrier, 2 shards", "running": True}
    rounds = {"run": "b", "title": "rounds, 1 shard", "running": True}
    other = {"run": "c", "title": "of another fit", "running": False, "progress": EVENTS[3]}
    looks = [
        [other, barrier],
        [other, barrier | {"progress": EVENTS[1], "test": EVENTS[2]}],
        [other, rounds | {"progress": EVENTS[3]}],
        [other, barrier | {"running": False, "progress": EVENTS[3], "test": EVENTS[4]}],
    ]
    ended = threading.Event()

    def look():
        if len(looks) == 1:
            ended.set()
        return json.dumps(looks.pop(0))

    Bar.made = []
    follow(look, ended, Bar, seconds=0.001)
    first, second = Bar.made
    assert (first.desc, first.n, first.total, first.open) == ("barrier, 2 shards", 4, 4, False)
    assert first.figures["rows/s"] == "90" and first.figures["test accuracy"] == "0.7500"
    assert second.n == 4 and "loss" not in second.figures and not second.open


def test_the_bar_of_nets_of_keys_counts_their_tasks():
    keys = {"event": "keys", "keys": 1234, "tasks": 3, "of": 16, "seconds": 2, "keys_per_s": 617}
    run = {"run": "a", "title": "a net for each key", "running": True, "progress": keys}
    looks = [[], [run]]
    ended = threading.Event()
    ended.set()
    Bar.made = []
    follow(lambda: json.dumps(looks.pop(0)), ended, Bar, seconds=0.001)
    (bar,) = Bar.made
    assert (bar.desc, bar.unit, bar.n, bar.total) == ("a net for each key", "task", 3, 16)
    assert bar.figures == {"keys": "1,234", "keys/s": "617"}


def test_a_session_tells_its_runs(spark):
    from connect_nets import net

    from cafetiere.spark.progress import _look

    estimator, rows = net(spark, maxIter=7)
    estimator.fit(rows)
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    run = json.loads(_look(spark, estimator.uid)())[0]
    assert run["title"] == "barrier, 2 shards" and not run["running"]
    assert run["progress"]["step"] == run["progress"]["max_iter"] == 7


def test_a_look_that_fails_ends_the_bars_alone():
    Bar.made = []
    follow(lambda: "no JSON", threading.Event(), Bar, seconds=0.001)
    assert Bar.made == []


def test_nothing_is_drawn_outside_a_notebook():
    from cafetiere.spark.progress import in_notebook

    assert not in_notebook()
