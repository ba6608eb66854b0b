# SPDX-License-Identifier: Apache-2.0
"""Turns the log of a training into tables: ``python -m cafetiere.parse_log LOG OUTDIR``.

Reads logs of ``cafetiere train`` and of Caffe. Writes ``OUTDIR/<log>.train`` and
``OUTDIR/<log>.test``, comma separated, with the columns NumIters, Seconds (since the line that says
"Solving"), LearningRate and one for each output of the net; with ``--plot`` also a picture.
"""

from __future__ import annotations

import argparse
import calendar
import csv
import datetime
import math
import pathlib
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

Row = dict[str, float]

_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|-?nan|-?inf)"
_PREFIX = re.compile(r"[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6}) ")
_ITERATION = re.compile(r"Iteration (\d+)")
_OUTPUT = re.compile(rf"(Train|Test) net output #\d+: (\S+) = {_NUMBER}")
_RATE = re.compile(rf"lr = {_NUMBER}")
_LEAP_YEAR = 2000


@dataclass
class Log:
    """What a log says: one row for each iteration at which the net told its outputs."""

    train: list[Row] = field(default_factory=list)
    test: list[Row] = field(default_factory=list)


def parse_log(path: str | pathlib.Path) -> Log:
    """Reads the log file at ``path``. Lines without a time stamp are passed over."""
    path = pathlib.Path(path)
    year = datetime.datetime.fromtimestamp(path.stat().st_ctime).year
    with path.open(errors="replace") as lines:
        return parse_lines(lines, year)


def parse_lines(lines: Iterable[str], year: int) -> Log:
    """Reads log lines; ``year`` is that of the first one, as the lines do not tell it."""
    log = Log()
    clock = _Clock(year)
    iteration, rate = None, math.nan
    for line in lines:
        seconds = clock.seconds(line)
        if seconds is None:
            continue
        if found := _ITERATION.search(line):
            iteration = float(found[1])
        if iteration is None:
            continue
        if found := _RATE.search(line):
            rate = float(found[1])
            for row in log.train[-1:]:  # the rate is told after the outputs of its iteration
                if row["NumIters"] == iteration:
                    row["LearningRate"] = rate
        if found := _OUTPUT.search(line):
            rows = log.train if found[1] == "Train" else log.test
            if not rows or rows[-1]["NumIters"] != iteration:
                rows.append({"NumIters": iteration, "Seconds": seconds, "LearningRate": rate})
            rows[-1][found[2]] = float(found[3])
    for rows in (log.train, log.test):
        _fill_first_rate(rows, log.train)
    return log


class _Clock:
    """Seconds since the line that says "Solving"; before it, since the first line."""

    def __init__(self, year: int):
        self._year = year
        self._start: datetime.datetime | None = None
        self._last: datetime.datetime | None = None
        self._solving = False

    def seconds(self, line: str) -> float | None:
        """The time of a line, or None where it has no stamp."""
        stamp = _PREFIX.match(line)
        if not stamp:
            return None
        month, day, *time = map(int, stamp.groups())
        try:
            datetime.datetime(_LEAP_YEAR, month, day, *time)
        except ValueError:
            return None
        if self._last and month < self._last.month:  # a new year
            self._year += 1
        if (month, day) == (2, 29) and not calendar.isleap(self._year):
            self._go_back_to_leap_year()
        now = self._last = datetime.datetime(self._year, month, day, *time)
        if self._start is None or ("Solving" in line and not self._solving):
            self._start, self._solving = now, "Solving" in line
        return (now - self._start).total_seconds()

    def _go_back_to_leap_year(self) -> None:
        """The log is of an earlier year than its file, which may be a copy."""
        back = next(n for n in range(1, 9) if calendar.isleap(self._year - n))
        self._year -= back
        if self._start:
            self._start = self._start.replace(year=self._start.year - back)


def _fill_first_rate(rows: list[Row], train: list[Row]) -> None:
    """The first rows come before any rate is told; theirs is the first of the training."""
    rates = (row["LearningRate"] for row in train if not math.isnan(row["LearningRate"]))
    first = next(rates, math.nan)
    for row in rows:
        if not math.isnan(row["LearningRate"]):
            return
        row["LearningRate"] = first


def write_csv(rows: list[Row], path: str | pathlib.Path, delimiter: str = ",") -> None:
    """Writes ``rows`` under a line of names; columns stand in the order of their first rows."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, names, delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def plot(log: Log, path: str | pathlib.Path, x: str = "NumIters") -> None:
    """Draws all outputs and the learning rate over ``x``, NumIters or Seconds, with matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(n for row in log.train + log.test for n in row))
    names = [name for name in names if name not in ("NumIters", "Seconds")]
    figure, axes = pyplot.subplots(
        max(len(names), 1), sharex=True, squeeze=False, figsize=(8, 3 * max(len(names), 1))
    )
    for axis, name in zip(axes[:, 0], names):
        for rows, label in ((log.train, "train"), (log.test, "test")):
            points = [(row[x], row[name]) for row in rows if name in row]
            if points and not (name == "LearningRate" and label == "test"):
                axis.plot(*zip(*points), marker=".", label=label)
        axis.set_ylabel(name)
        axis.legend()
    axes[-1, 0].set_xlabel(x)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="cafetiere.parse_log", description=__doc__.split("\n")[0])
    parser.add_argument("log", type=pathlib.Path, help="the log of a training")
    parser.add_argument("outdir", type=pathlib.Path, help="the folder that gets the tables")
    parser.add_argument("--delimiter", default=",", help="between columns (default: a comma)")
    parser.add_argument("--plot", action="store_true", help="also draw <log>.png with matplotlib")
    parser.add_argument("--verbose", action="store_true", help="print what is written")
    given = parser.parse_args(arguments)
    try:
        log = parse_log(given.log)
        given.outdir.mkdir(parents=True, exist_ok=True)
        for kind in ("train", "test"):
            path = given.outdir / f"{given.log.name}.{kind}"
            write_csv(getattr(log, kind), path, given.delimiter)
            if given.verbose:
                print(f"Wrote {path}")
        if given.plot:
            plot(log, given.outdir / f"{given.log.name}.png")
    except ImportError as error:
        print(f"cafetiere.parse_log: --plot needs {error.name}; install it", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cafetiere.parse_log: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
