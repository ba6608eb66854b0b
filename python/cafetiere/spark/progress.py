# SPDX-License-Identifier: Apache-2.0
"""A bar for each training that goes on, in notebooks.

On a terminal the driver's own line shows the same. In a notebook, and on the terminal of a client
of Spark Connect, a bar of tqdm takes its place, if tqdm is installed.
"""

import contextlib
import json
import sys
import threading

from pyspark.sql.utils import is_remote

from cafetiere.spark.connect import told_runs

_HAS_BAR = "spark.cafetiere.hasProgressBar"  # a local property, under which no line is printed
_SECONDS = 0.5  # from one look at the runs to the next
_watch = threading.Lock()  # one of the fits that run side by side draws the bars of all


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def _is_watched() -> bool:
    return in_notebook() or (is_remote() and sys.stderr.isatty())


def _look(spark, owner: str):
    """A function that tells of runs, as JSON: those of `owner`, or of the whole application."""
    if is_remote():
        return lambda: told_runs(spark, owner)
    runs = spark._jvm.cafetiere.spark.ui.RunStore
    java_context = spark._jsparkSession.sparkContext()
    return lambda: runs.told(java_context)


@contextlib.contextmanager
def shown(spark, owner: str):
    """Shows the runs of a session while the estimator `owner` trains; never in its way."""
    tqdm = _bar() if _is_watched() else None
    if tqdm is None:
        yield
        return
    with _without_line(spark):
        if not _watch.acquire(blocking=False):
            yield
            return
        ended = threading.Event()
        watched = (_look(spark, owner), ended, tqdm)
        watcher = threading.Thread(target=follow, args=watched, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
            _watch.release()


def _bar():
    """tqdm's bar, or None if it is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


@contextlib.contextmanager
def _without_line(spark):
    """Keeps the driver from printing its own line, which a notebook would show beside the bar."""
    if is_remote():
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty(_HAS_BAR)
    context.setLocalProperty(_HAS_BAR, "true")
    try:
        yield
    finally:
        context.setLocalProperty(_HAS_BAR, before)


def follow(look, ended, tqdm, seconds=_SECONDS):
    """Draws what `look` tells of runs, as JSON, until `ended` is set, and once more then.

    Runs that have ended before the first look are others' and get no bar.
    """
    bars, others, last = {}, None, False
    while not last:
        last = others is not None and ended.wait(seconds)
        try:
            runs = json.loads(look())
        except Exception:
            break  # a bar that cannot be drawn is no fault of the training
        if others is None:
            others = {run["run"] for run in runs if not run["running"]}
        for run in runs:
            if "progress" in run and run["run"] not in others:
                _draw(bars, run, tqdm)
    for bar in bars.values():
        bar.close()


def _draw(bars, run, tqdm):
    progress = run["progress"]
    unit, done, total = _work(progress)
    bar = bars.get(run["run"])
    if bar is None:
        bar = bars[run["run"]] = tqdm(
            total=total, initial=0, desc=run["title"], unit=unit, leave=True
        )
    bar.n = done
    bar.set_postfix(_of_keys(progress) if unit == "task" else _of_steps(run))


def _work(progress):
    """The unit of a run's work, how many are done, and how many there are."""
    if progress["event"] == "keys":
        return "task", progress["tasks"], progress["of"]
    return "step", progress["step"], progress["max_iter"]


def _of_keys(progress):
    return {"keys": f"{progress['keys']:,}", "keys/s": f"{progress['keys_per_s']:,.0f}"}


def _of_steps(run):
    progress = run["progress"]
    figures = {"epoch": f"{progress['epoch']:.1f}", "rows/s": f"{progress['rows_per_s']:,.0f}"}
    if progress.get("loss") is not None:
        figures["loss"] = f"{progress['loss']:.4f}"
    for name, value in run.get("test", {}).get("outputs", {}).items():
        figures[f"test {name}"] = f"{value:.4f}"
    return figures
