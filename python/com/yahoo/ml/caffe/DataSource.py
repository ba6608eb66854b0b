# SPDX-License-Identifier: Apache-2.0
"""The sources that a net's data layers name."""

from com.yahoo.ml.caffe._jvm import jvm_class
from com.yahoo.ml.caffe.Config import Config


class DataSource:
    """Finds sources."""

    def __init__(self, sc):
        self._java = jvm_class(sc, "DataSource")

    def getSource(self, conf, isTraining):
        """The source of the data layer of training or of tests."""
        if not isinstance(conf, Config) or not isinstance(isTraining, bool):
            raise TypeError(
                "getSource takes a Config and True or False, and was given a"
                f" {type(conf).__name__} and a {type(isTraining).__name__}"
            )
        return self._java.getSource(conf._java, isTraining)
