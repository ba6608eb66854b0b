# SPDX-License-Identifier: Apache-2.0
"""What a training did."""

import json
import math
import reprlib
from dataclasses import dataclass, fields

from cafetiere.spark.history import History


@dataclass(frozen=True)
class Partition:
    """What became of a partition of the rows among survivors."""

    partition: int
    rows: int
    losses: int
    steps_away: int


@dataclass(frozen=True)
class CoreHours:
    """What cores were used for, in core-hours; the parts add up to the whole."""

    computing: float
    data: float
    network: float
    testing: float
    storing: float
    starting: float
    lost: float
    idle: float

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return sum(getattr(self, part.name) for part in fields(self))

    def shares(self) -> str:
        """The parts as percentages, as the console shows them: those of 0.1 % or more."""
        parts = ((part.name, 100 * getattr(self, part.name)) for part in fields(self))
        shares = ((name, hours / (self.total or 1)) for name, hours in parts)
        return ", ".join(f"{name} {share:.1f} %" for name, share in shares if share >= 0.05)


@dataclass(frozen=True)
class RankAccount:
    """A rank's part of the account."""

    rank: int
    executor: str
    core_hours: CoreHours


@dataclass(frozen=True, repr=False)
class Account:
    """What a fit used its cores for; cost is 0 without a pricePerCoreHour."""

    seconds: float
    cores: int
    price_per_core_hour: float
    cost: float
    core_hours: CoreHours
    ranks: list[RankAccount]

    def __repr__(self) -> str:
        """One line; the figures of each rank are in `ranks`."""
        cost = f", cost {self.cost:.3g}" if self.cost else ""
        shares = self.core_hours.shares()
        return f"Account({self.seconds:.1f} s x {self.cores} cores{cost}: {shares})"

    @classmethod
    def _of(cls, found: dict) -> "Account":
        ranks = [
            RankAccount(rank["rank"], rank["executor"], CoreHours(**rank["core_hours"]))
            for rank in found["ranks"]
        ]
        return cls(**found | {"core_hours": CoreHours(**found["core_hours"]), "ranks": ranks})


@dataclass(frozen=True)
class EarlyStopping:
    """What the tests came to where the solver asks for early stopping; else the curve is empty.

    The model has the weights of best_step; curve: step and output of each test.
    """

    output: str
    best_step: int
    best: float
    interval: int
    stopped: bool
    curve: list[list[float]]
    best_epoch: int

    def __bool__(self) -> bool:
        """Whether there were tests."""
        return bool(self.curve)


def _shortened(value) -> str:
    """The value as text, of a list the first six elements."""
    return reprlib.repr(value) if isinstance(value, list) else repr(value)


@dataclass(frozen=True, repr=False)
class TrainingSummary:
    """What a training did, with the same fields for all engines.

    A field that says nothing for an engine is 0, False or empty. The names are those of the JVM's
    TrainingSummary in snake_case, where each is explained.
    """

    engine: str
    steps: int
    first_step: int
    attempts: int
    rounds: int
    epochs: int
    rows_given: int
    rows_skipped: int
    rows_used: int
    rows_per_epoch: list[int]
    loss: float
    sha256: str
    shards: int
    ranks: int
    executors: int
    instruction_set: str
    peak_bytes: int
    encrypted: bool
    events_by: str
    seconds: float
    rows_per_second: float
    fit_seconds: float
    seconds_to_first_step: float
    members_at_start: int
    members_at_end: int
    views: int
    partitions: list[Partition]
    keys: int
    failed_keys: int
    account: Account
    early_stopping: EarlyStopping

    @classmethod
    def from_json(cls, text: str) -> "TrainingSummary":
        """Reads what the JVM's summary writes."""
        found = json.loads(text)
        found["rows_per_second"] = found.pop("rows_per_s")
        found["partitions"] = [Partition(**partition) for partition in found["partitions"]]
        found["account"] = Account._of(found["account"])
        found["early_stopping"] = EarlyStopping(**found["early_stopping"])
        if found["loss"] is None:
            found["loss"] = math.nan
        return cls(**found)

    def __repr__(self) -> str:
        """The fields that are not empty, one a line; long lists are shortened."""
        told = ((field.name, getattr(self, field.name)) for field in fields(self))
        lines = [f"  {name}={_shortened(value)},\n" for name, value in told if value]
        return f"TrainingSummary(\n{''.join(lines)})"

    def told_by(self, java_net) -> "TrainingSummary":
        """The same, with a course that is read from a net of the JVM or a RemoteNet when needed."""
        object.__setattr__(self, "_java_net", java_net)
        return self

    @property
    def course(self) -> History:
        """The events of the training, as tables, a plot and an HTML page."""
        net = getattr(self, "_java_net", None)
        lines = net.events().splitlines() if net else []
        return History(
            [json.loads(line) for line in lines], json.loads(net.result()) if net else {}
        )

    @property
    def history(self):
        """A pandas DataFrame with a row for each progress report: step, epoch, loss, .."""
        return self.course.frame()

    def plot(self, axes=None):
        """Plots losses and tests over the steps with matplotlib; returns the axes."""
        return self.course.plot(axes)

    def _repr_html_(self) -> str:
        return self.course._repr_html_()
