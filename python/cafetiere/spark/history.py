# SPDX-License-Identifier: Apache-2.0
"""The course of a training: its events as tables and as a picture."""

import html
import json


class History:
    """What happened in a training, in order.

    events: dictionaries, one an event: "progress", "test", "log" and others.
    result: the summary as a dictionary.
    """

    def __init__(self, events, result):
        self.events = events
        self.result = result

    def frame(self):
        """A pandas DataFrame with a row each time that progress was told.

        Its columns are the event's: step, epoch, loss, lr, rows_per_s, the shares of waits, and
        the seconds since the start.
        """
        import pandas

        told = [event for event in self.events if event["event"] == "progress"]
        return pandas.DataFrame(told).drop(columns="event", errors="ignore")

    def tests(self):
        """A pandas DataFrame with a row each test, and the net's outputs as columns."""
        import pandas

        rows = [
            {"step": event["step"], **event["outputs"]}
            for event in self.events
            if event["event"] == "test"
        ]
        return pandas.DataFrame(rows)

    def plot(self, axes=None):
        """Draws the loss in training, and the tests' outputs, over the steps, by matplotlib.

        Draws into `axes` or into new ones; returns them.
        """
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots()
        course, tests = self.frame(), self.tests()
        if len(course):
            axes.plot(course["step"], course["loss"].astype(float), label="loss", linewidth=1)
        for name in tests.columns.drop("step", errors="ignore"):
            axes.plot(tests["step"], tests[name].astype(float), label=f"test {name}", marker=".")
        axes.set_xlabel("step")
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
        return axes

    def report(self) -> str:
        """A page of HTML with curves and figures; the same as Spark's UI shows."""
        from cafetiere._library import call_for_text

        lines = "".join(json.dumps(event) + "\n" for event in self.events)
        return call_for_text("cft_report", lines.encode(), json.dumps(self.result).encode())

    def _repr_html_(self) -> str:
        page = html.escape(self.report(), quote=True)
        style = "width:100%;height:44em;border:0"
        return f'<iframe title="report" srcdoc="{page}" style="{style}"></iframe>'
