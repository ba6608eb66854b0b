# SPDX-License-Identifier: Apache-2.0
"""How stages of ours are saved, loaded and watched."""

import json
import sys

from pyspark.ml.util import JavaMLReadable, JavaMLReader
from pyspark.sql.utils import is_remote

from cafetiere.spark.connect import RemoteNet, refuse
from cafetiere.spark.errors import translated
from cafetiere.spark.interrupts import interruptible
from cafetiere.spark.progress import shown
from cafetiere.spark.session import require_jar, require_table
from cafetiere.spark.summary import TrainingSummary


class _Reader(JavaMLReader):
    """Loads one of our classes; Spark's own reader looks below org.apache.spark."""

    @classmethod
    def _java_loader_class(cls, clazz):
        name = f"{clazz.__module__}.{clazz.__name__}"
        require_jar(name)
        return name

    @translated()
    def load(self, path):
        """The stage saved at a Hadoop path."""
        return super().load(path)


class Readable(JavaMLReadable):
    """Gives a class its read() and load()."""

    @classmethod
    def read(cls):
        """A reader of saved stages of this class."""
        if is_remote():
            from pyspark.ml.connect.readwrite import RemoteMLReader

            return RemoteMLReader(cls)
        return _Reader(cls)


class Released:
    """A model that leaves the cache of a server of Spark Connect when nobody names it any more."""

    def __del__(self):
        """Not as Python ends, when the client would wait for an answer for ever."""
        if not sys.is_finalizing():
            super().__del__()


class Told:
    """Gives a model what its training did."""

    @property
    def _net(self):
        return RemoteNet(self) if is_remote() else self._java_obj

    @property
    def summary(self) -> TrainingSummary:
        """What the training did: steps, rows given and used, seconds, sha256 and more.

        With groupCol, that of all keys.
        """
        net = self._net
        return TrainingSummary.from_json(net.result()).told_by(net)

    @property
    def result(self) -> dict:
        """The summary as a dict; rows_per_second is called rows_per_s, a missing loss is None."""
        return json.loads(self._net.result())

    @property
    def events(self) -> list:
        """The events of the training, in order; with groupCol, none once the model was saved."""
        return [json.loads(line) for line in self._net.events().splitlines()]


class Watched:
    """Shows an estimator's fit while it goes on, where this is a notebook."""

    def _fit(self, dataset):
        require_table(dataset)
        if self.hasParam("groupCol") and self.getOrDefault("groupCol"):
            refuse(
                "a net for each key of groupCol",
                "fit it in a session without Connect, or one estimator for each key",
            )
        spark = dataset.sparkSession
        with translated(), interruptible(spark), shown(spark, self.uid):
            return super()._fit(dataset)
