# SPDX-License-Identifier: Apache-2.0
"""What a fit would do and take."""

import json
from dataclasses import dataclass, field

from cafetiere.spark.connect import refuse
from cafetiere.spark.errors import translated
from cafetiere.spark.interrupts import interruptible
from cafetiere.spark.session import require_table


@dataclass(frozen=True)
class StepTime:
    """Seconds of a step: computing, waiting for rows, waiting for other workers, and all of it."""

    computing: float
    data: float
    network: float
    total: float


@dataclass(frozen=True)
class Scaling:
    """What a number of workers would reach."""

    workers: int
    epoch_seconds: float
    efficiency: float


@dataclass(frozen=True)
class Explanation:
    """What a fit would do and need; str() is readable text.

    The names are those of the JVM's Explanation in snake_case, where each is explained; blobs are
    the shapes by name.
    """

    blobs: dict[str, list[int]]
    parameters: int
    rows: int
    workers: int
    shards: int
    threads: int
    step_rows: int
    steps_per_epoch: int
    step_flops: float
    step_bytes: float
    exchanged_bytes: float
    net_bytes: int
    row_bytes: int
    worker_bytes: int
    time: StepTime
    is_probed: bool
    scaling: list[Scaling]
    epoch_seconds: float
    best_workers: int
    text: str = field(repr=False)

    def __str__(self) -> str:
        """Some lines of readable text."""
        return self.text

    @classmethod
    def from_java(cls, explained) -> "Explanation":
        """Made from the JVM's Explanation."""
        found = json.loads(explained.toJson())
        found["blobs"] = {blob["name"]: blob["shape"] for blob in found["blobs"]}
        found["time"] = StepTime(**found["time"])
        found["scaling"] = [Scaling(**one) for one in found["scaling"]]
        return cls(**found, text=explained.text())


class Explaining:
    """Gives an estimator its explain()."""

    @translated()
    def explain(self, data, probe: bool = True) -> Explanation:
        """What a fit on this table would do and take: shapes, memory, operations, time and workers.

        Reads the table to count its rows; then trains for some seconds on a few of them, on all
        executors that fit() would use, and throws the weights away. With ``probe=False`` the time
        follows from the limits of an executor's machine, which are measured once.
        """
        refuse("explain", "ask it in a session without Connect")
        require_table(data)
        self._transfer_params_to_java()
        with interruptible(data.sparkSession):
            return Explanation.from_java(self._java_obj.explain(data._jdf, probe))
