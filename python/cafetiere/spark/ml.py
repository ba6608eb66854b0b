# SPDX-License-Identifier: Apache-2.0
"""Estimators for tables of numbers, texts and dates, without any of Caffe's files.

```python
from cafetiere.spark.ml import CaffeClassifier

train = spark.read.csv("visitors.csv", header=True, inferSchema=True)
model = CaffeClassifier(labelCol="buys").fit(train)
model.transform(train).select("predictedLabel", "probability").show()
```
"""

import json

from pyspark.ml.util import JavaMLWritable
from pyspark.ml.wrapper import JavaEstimator, JavaModel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from cafetiere.spark.connect import refuse, told
from cafetiere.spark.errors import translated
from cafetiere.spark.explanation import Explaining
from cafetiere.spark.params import (
    ClassificationParams,
    ClassifierParams,
    RegressionParams,
    RegressorParams,
    ml_defaults,
)
from cafetiere.spark.stages import Readable, Released, Told, Watched

__all__ = [
    "CaffeClassificationModel",
    "CaffeClassifier",
    "CaffeRegressionModel",
    "CaffeRegressor",
]


class CaffeClassifier(
    Watched, ClassifierParams, Explaining, JavaEstimator, Readable, JavaMLWritable
):
    """Learns to predict classes from the columns of a table.

    Set params by name, by setters, or in fit() for a single fit. The table is read twice, to
    collect statistics and to train: cache it if it is expensive to compute.
    """

    def _create_model(self, java_model):
        return CaffeClassificationModel(java_model)


class CaffeRegressor(Watched, RegressorParams, Explaining, JavaEstimator, Readable, JavaMLWritable):
    """Learns to predict a number from the columns of a table.

    Set params by name, by setters, or in fit() for a single fit. The table is read twice, to
    collect statistics and to train: cache it if it is expensive to compute.
    """

    def _create_model(self, java_model):
        return CaffeRegressionModel(java_model)


class _TableModel(Told, Released, JavaModel, Readable, JavaMLWritable):
    """What both models have."""

    _parts = ()

    def __init__(self, java_model=None):
        super().__init__(java_model)
        self._setDefault(**ml_defaults(*self._parts))
        if java_model is not None and not is_remote():
            self._resetUid(java_model.uid())
            self._transfer_params_from_java()

    @property
    def nets(self):
        """With groupCol: a row for each key, with its net and weights, or why it has none."""
        refuse("nets", "there is one net for all rows")
        return DataFrame(self._java_obj.nets(), SparkSession.active())

    @translated()
    def netOf(self, key):
        """With groupCol: the net of a key, a CaffeModel, for all ways to score."""
        refuse("netOf", "there is one net for all rows")
        from cafetiere.spark import CaffeModel

        return CaffeModel(self._java_obj.netOf(key))

    @translated()
    def modelOf(self, key):
        """With groupCol: the model of a key alone, which can be exported and saved by itself."""
        refuse("modelOf", "there is one net for all rows")
        return type(self)(self._java_obj.modelOf(key))

    @property
    def caffeModel(self):
        """A copy of the net, a CaffeModel; the encoding of the columns is its first layer."""
        refuse("caffeModel", "save the model, and CaffeModel.load(path + '/net') is it")
        from cafetiere.spark import CaffeModel

        return CaffeModel(self._java_obj.caffeModel())

    @translated()
    def exportOnnx(self, path):
        """Writes the model as an ONNX file by Hadoop path, for servers that know no Spark.

        Its inputs are the columns learned from, as they are.
        """
        refuse("exportOnnx", "save the model, and load and export it in a session without Connect")
        self._transfer_params_to_java()
        self._java_obj.exportOnnx(str(path))


class CaffeClassificationModel(ClassificationParams, _TableModel):
    """A trained classifier: transform() adds scores, probabilities and predictions to every row."""

    _parts = ("model", "classification")

    @property
    def labels(self) -> list:
        """The classes as texts, in the order of the vectors."""
        if is_remote():
            return json.loads(told(self, "labels"))
        return list(self._java_obj.labels())

    @property
    def numClasses(self) -> int:
        """How many classes there are."""
        return len(self.labels)

    @property
    def hasSeveralLabels(self) -> bool:
        """Whether each row has several labels, each of which holds or does not."""
        refuse("hasSeveralLabels", "the rows of transform() show it")
        return self._java_obj.hasSeveralLabels()


class CaffeRegressionModel(RegressionParams, _TableModel):
    """A trained regressor: transform() adds a prediction to every row."""

    _parts = ("model", "regression")

    @property
    def numOutputs(self) -> int:
        """How many numbers are predicted for a row."""
        refuse("numOutputs", "the rows of transform() show it")
        return self._java_obj.numOutputs()
