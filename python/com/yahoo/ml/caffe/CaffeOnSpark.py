# SPDX-License-Identifier: Apache-2.0
"""Training, tests and features."""

from py4j.java_gateway import JavaObject

from com.yahoo.ml.caffe._jvm import data_frame, jvm_class, python_value, scala_context


class CaffeOnSpark:
    """Trains nets, tests them and extracts features, in the executors of a Spark application.

    ``sql_context`` is not needed any more.
    """

    def __init__(self, sc, sql_context=None):
        self._java = jvm_class(sc, "CaffeOnSpark")(scala_context(sc))

    def train(self, train_source):
        """Trains, and writes the model where the source's configuration says."""
        self._java.train(_java(train_source))

    def trainWithValidation(self, train_source, validation_source):
        """Trains, with a test every test_interval steps: a DataFrame with a row for each."""
        sources = (train_source, validation_source)
        return data_frame(self._java.trainWithValidation(*map(_java, sources)))

    def test(self, source):
        """A dict of the means of all outputs of the TEST net, a list for each."""
        return python_value(self._java.test(_java(source)))

    def features(self, source):
        """A DataFrame of SampleID and the configuration's features."""
        return data_frame(self._java.features(_java(source)))


def _java(source):
    if isinstance(source, JavaObject):
        return source
    raise TypeError(
        "a source is needed, as DataSource(sc).getSource(conf, isTraining) gives it, and not"
        f" {'None' if source is None else 'a ' + type(source).__name__}"
    )
