# SPDX-License-Identifier: Apache-2.0
"""A bar for each training that goes on, in notebooks.

On a terminal the driver's own line shows the same. In a notebook that line goes to the log of the
server, so a bar of tqdm takes its place, if tqdm is installed.
"""

import contextlib
import json
import sys
import threading

_SECONDS = 0.5  # from one look at the runs to the next
_watch = threading.Lock()  # one of the fits that run side by side draws the bars of all


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextlib.contextmanager
def shown(spark):
    """Shows the runs of a session's application while the block trains; never in its way."""
    if not in_notebook() or not _watch.acquire(blocking=False):
        yield
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        _watch.release()
        yield
        return
    ended = threading.Event()
    runs = spark._jvm.cafetiere.spark.ui.RunStore
    java_context = spark._jsparkSession.sparkContext()
    watcher = threading.Thread(
        target=follow, args=(lambda: runs.live(java_context), ended, tqdm), daemon=True
    )
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        _watch.release()


def follow(look, ended, tqdm, seconds=_SECONDS):
    """Draws what `look` tells of the runs that go on, as JSON, until `ended` is set."""
    bars = {}
    while not ended.wait(seconds):
        try:
            told = json.loads(look())
        except Exception:
            break  # a bar that cannot be drawn is no fault of the training
        for run in told:
            if "progress" in run:
                _draw(bars, run, tqdm)
    for bar in bars.values():
        bar.close()


def _draw(bars, run, tqdm):
    progress = run["progress"]
    bar = bars.get(run["run"])
    if bar is None:
        bar = bars[run["run"]] = tqdm(
            total=progress["max_iter"], initial=0, desc=run["title"], unit="step", leave=True
        )
    bar.n = progress["step"]
    figures = {"epoch": f"{progress['epoch']:.1f}", "rows/s": f"{progress['rows_per_s']:,.0f}"}
    if progress.get("loss") is not None:
        figures["loss"] = f"{progress['loss']:.4f}"
    for name, value in run.get("test", {}).get("outputs", {}).items():
        figures[f"test {name}"] = f"{value:.4f}"
    bar.set_postfix(figures)
