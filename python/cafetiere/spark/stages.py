# SPDX-License-Identifier: Apache-2.0
"""How stages of ours are saved, loaded and watched."""

from pyspark.ml.util import JavaMLReadable, JavaMLReader

from cafetiere.spark.progress import shown
from cafetiere.spark.session import require_jar


class _Reader(JavaMLReader):
    """Loads one of our classes; Spark's own reader looks below org.apache.spark."""

    @classmethod
    def _java_loader_class(cls, clazz):
        name = f"{clazz.__module__}.{clazz.__name__}"
        require_jar(name)
        return name


class Readable(JavaMLReadable):
    """Gives a class its read() and load()."""

    @classmethod
    def read(cls):
        """A reader of saved stages of this class."""
        return _Reader(cls)


class Watched:
    """Shows an estimator's fit while it goes on, where this is a notebook."""

    def _fit_java(self, dataset):
        with shown(dataset.sparkSession):
            return super()._fit_java(dataset)
