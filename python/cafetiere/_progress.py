# SPDX-License-Identifier: Apache-2.0
"""The progress of a training on the standard error stream, as the program shows it."""

import math
import os
import shutil
import sys


def _clock(seconds):
    """3725 is 1:02:05, 65 is 1:05."""
    minutes, second = divmod(math.ceil(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def _figure(value, form):
    """A number, for which JSON has null where it is none."""
    return "nan" if value is None else format(value, form)


def _parts(event, tested):
    """The parts of a line, the most wanted first."""
    step, last = event["step"], event["max_iter"]
    yield f"{100 * step // last:3}%"
    yield f"step {step}/{last}"
    yield f"loss {_figure(event['loss'], '.4g')}"
    yield f"{_figure(event['rows_per_s'], ',.0f')} rows/s"
    if step >= last:
        yield "took " + _clock(event["seconds"])
    elif step > event.get("first_step", 0):
        done = step - event.get("first_step", 0)
        yield "ETA " + _clock(event["seconds"] * (last - step) / done)
    for name, value in reversed([*tested.items()]):
        yield f"validation {name} {_figure(value, '.4g')}"
    yield f"epoch {event['epoch']:.1f}"
    yield f"lr {_figure(event['lr'], '.3g')}"


class Console:
    """Takes the events of a training: a line that is rewritten, or at most one in 5 s in a file."""

    def __init__(self, stream=None):
        self._stream = stream or sys.stderr
        self._rewrites = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._interval = 0.1 if self._rewrites else 5.0
        self._shown, self._tested, self._line = -math.inf, {}, ""

    def __call__(self, event):
        """Shows an event, if it is time to."""
        if event["event"] == "test":
            self._tested = event["outputs"]
        elif event["event"] == "log" and event["level"] != "info":
            self._print(f"{event['level']}: {event['text']}")
        elif event["event"] == "progress":
            is_last = event["step"] >= event["max_iter"]
            if is_last or event["seconds"] >= self._shown + self._interval:
                self._show(event)

    def _show(self, event):
        self._shown = event["seconds"]
        parts = [*_parts(event, self._tested)]
        if not self._rewrites:
            self._print("  ".join(parts))
            return
        # A line that wraps cannot be rewritten.
        while len("  ".join(parts)) >= shutil.get_terminal_size().columns and len(parts) > 1:
            parts.pop()
        self._line = "  ".join(parts)
        self._write("\r\x1b[K" + self._line)

    def _print(self, line):
        clear = "\r\x1b[K" if self._line else ""
        self._write(f"{clear}{line}\n{self._line}")

    def _write(self, text):
        self._stream.write(text)
        self._stream.flush()

    def close(self):
        """Ends the line."""
        if self._line:
            self._write("\n")
            self._line = ""
