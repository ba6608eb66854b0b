# SPDX-License-Identifier: Apache-2.0
"""The sources that a net's data layers name."""

from com.yahoo.ml.caffe._jvm import jvm_class


class DataSource:
    """Finds sources."""

    def __init__(self, sc):
        self._java = jvm_class(sc, "DataSource")

    def getSource(self, conf, isTraining):
        """The source of the data layer of training or of tests."""
        return self._java.getSource(conf._java, isTraining)
