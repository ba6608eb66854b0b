# SPDX-License-Identifier: Apache-2.0
"""Cafetiere as a stage of a Spark ML pipeline.

```python
from cafetiere.spark import CaffeEstimator, session_builder

spark = session_builder().master("local-cluster[2,1,2048]").getOrCreate()
estimator = CaffeEstimator(solver=open("lenet_solver.prototxt").read(), featuresCol="image")
model = estimator.fit(spark.read.parquet("train.parquet"))
model.transform(spark.read.parquet("test.parquet")).select("prediction", "label").show()
```

Import this package before the session starts. Any session that the process starts afterwards, by
session_builder() or SparkSession.builder, then gets Cafetiere's jar and the plugin that reports
progress to the driver, in addition to the jars and plugins in its own settings. A session whose
settings name the jar already is left as it is.
"""

# The stages are defined here, and not in modules of their own, because Spark finds the Python class
# of a saved stage by the name of its Java class.

from pyspark.ml.util import JavaMLWritable
from pyspark.ml.wrapper import JavaEstimator, JavaModel
from pyspark.sql.utils import is_remote

from cafetiere.spark.connect import RemoteNet, RunReport, refuse
from cafetiere.spark.errors import translated
from cafetiere.spark.explanation import Explaining, Explanation
from cafetiere.spark.interrupts import interruptible
from cafetiere.spark.jar import jar_path
from cafetiere.spark.params import EstimatorParams, PredictionParams, defaults
from cafetiere.spark.progress import shown
from cafetiere.spark.session import add_to_new_sessions, session_builder
from cafetiere.spark.stages import Readable, Released, Told, Watched
from cafetiere.spark.summary import TrainingSummary

__all__ = [
    "CaffeEstimator",
    "CaffeModel",
    "Explanation",
    "RunReport",
    "TrainingSummary",
    "jar_path",
    "session_builder",
]

add_to_new_sessions()


class CaffeEstimator(Watched, EstimatorParams, Explaining, JavaEstimator, Readable, JavaMLWritable):
    """Trains a Caffe net on a DataFrame, inside the executors that hold it.

    Set params by name, by setters, or in fit() for a single fit.
    """

    def setValidationData(self, data):
        """Sets rows to test on, every test_interval steps of the solver or, if it has none, once an
        epoch; returns the estimator.
        """
        refuse("setValidationData", "mark the rows to test on in a column, validationIndicatorCol")
        self._java_obj.setValidationData(data._jdf if data is not None else None)
        return self

    def fitFiles(self, spark):
        """Trains on the files that the net's own Data or ImageData layer names, at a Hadoop path.

        Tests on what that of the TEST phase names if the solver has a test_interval. The columns
        are ``id``, ``data`` and ``label``, whatever featuresCol, labelCol and idCol say.
        """
        refuse("fitFiles", "read the files with spark.read.format('lmdb'), .. and fit that table")
        self._transfer_params_to_java()
        with translated(), interruptible(spark), shown(spark, self.uid):
            java_model = self._java_obj.fitFiles(spark._jsparkSession)
        return self._copyValues(self._create_model(java_model))

    def _create_model(self, java_model):
        return CaffeModel(java_model)

    def _copyValues(self, to, extra=None):
        """A model keeps the net that it was made with: the solver may test with one of its own."""
        if not isinstance(to, CaffeModel):
            return super()._copyValues(to, extra)
        net = RemoteNet(to).net() if is_remote() else to.getOrDefault(to.net)
        return super()._copyValues(to, extra)._set(net=net)


class CaffeModel(Told, Released, PredictionParams, JavaModel, Readable, JavaMLWritable):
    """A trained net: transform() adds predictions and blobs as columns to every row, in order."""

    def __init__(self, java_model=None):
        super().__init__(java_model)
        self._setDefault(**defaults("shared"))
        if java_model is not None and not is_remote():
            self._resetUid(java_model.uid())
            self._transfer_params_from_java()

    def hasParam(self, paramName):
        """Whether there is a param of this name; reads no property, since that is a fetch."""
        own = getattr(type(self), paramName, None) if isinstance(paramName, str) else None
        return not isinstance(own, property) and super().hasParam(paramName)

    @property
    def weights(self) -> bytes:
        """The weights, a caffemodel."""
        # Not _call_java: that takes any byte array for a pickle.
        return bytes(self._net.weights())

    @property
    def solverState(self) -> bytes:
        """Iteration and history of the solver, a solverstate."""
        return bytes(self._net.solverState())

    @property
    def weightsFile(self) -> str:
        """The path of weights larger than spark.cafetiere.largestModel, else ""."""
        return self._net.weightsFile()

    @property
    def solverStateFile(self) -> str:
        """The path of the solver state that belongs to weightsFile."""
        return self._net.solverStateFile()
