# SPDX-License-Identifier: Apache-2.0
"""What replaces the driver's JVM for a client of Spark Connect.

Of stages that Spark does not know, its server runs fit, transform, save and load, and nothing else.
So runs are told by a stage, RunReport, and a model tells of itself by a transform.
"""

import json

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.wrapper import JavaTransformer
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from cafetiere.spark.session import require_jar

__all__ = ["RunReport"]

_ASKED = "cafetiere:"


class RunReport(JavaTransformer):
    """The runs of the application as a table, including those in progress.

    transform() of any table gives a row for each run, the newest first: run, owner (the uid of the
    estimator), title, state ("running", "ended", "failed" or "cancelled"), began, heard, step,
    steps, epoch, loss, rowsPerSecond, secondsLeft, progress and test (the newest events, as JSON),
    summary (as JSON) and failure.
    """

    owner = Param(
        Params._dummy(),
        "owner",
        "The uid of the estimator whose runs are told. Empty: all runs.",
        TypeConverters.toString,
    )

    def __init__(self, *, owner: str = ""):
        super().__init__()
        name = "cafetiere.spark.connect.RunReport"
        require_jar(name)
        self._java_obj = self._new_java_obj(name, self.uid)
        self._setDefault(owner="")
        self.setOwner(owner)

    def setOwner(self, value: str):
        """Sets owner; returns the report."""
        return self._set(owner=value)

    def getOwner(self) -> str:
        """The value of owner."""
        return self.getOrDefault("owner")


def told_runs(spark, owner: str) -> str:
    """An estimator's runs, in JSON: run, title, running, the newest progress and test."""
    rows = RunReport(owner=owner).transform(spark.range(1))
    told = []
    for row in rows.select("run", "title", "state", "progress", "test").collect():
        run = {"run": row.run, "title": row.title, "running": row.state == "running"}
        for name in ("progress", "test"):
            if row[name] is not None:
                run[name] = json.loads(row[name])
        told.append(run)
    return json.dumps(told)


def told(model, what: str) -> bytes:
    """What the server's model has of this name."""
    asking = SparkSession.active().range(1).withColumnRenamed("id", _ASKED + what)
    parts = model.transform(asking).collect()
    return b"".join(bytes(row.value) for row in sorted(parts, key=lambda row: row.part))


class RemoteNet:
    """A model of the server, with what a CaffeModel of a JVM has under the same names."""

    def __init__(self, model):
        self._model = model

    def weights(self) -> bytes:
        """The weights, a caffemodel."""
        return told(self._model, "weights")

    def solverState(self) -> bytes:
        """The solver's state."""
        return told(self._model, "solverState")

    def weightsFile(self) -> str:
        """The path of large weights, or ""."""
        return told(self._model, "weightsFile").decode()

    def solverStateFile(self) -> str:
        """The path of the state that goes with them."""
        return told(self._model, "solverStateFile").decode()

    def result(self) -> str:
        """The summary as JSON."""
        return told(self._model, "result").decode()

    def events(self) -> str:
        """The events, a JSON object a line."""
        return told(self._model, "events").decode()

    def net(self) -> str:
        """The net's prototxt."""
        return told(self._model, "net").decode()


def refuse(what: str, instead: str) -> None:
    """Raises NotImplementedError over Spark Connect, whose server does not let us do this."""
    if is_remote():
        raise NotImplementedError(f"{what} is not possible over Spark Connect: {instead}")
