# SPDX-License-Identifier: Apache-2.0
"""The params of CaffeEstimator and CaffeModel: names, meanings and defaults as on the JVM."""

import functools
import inspect

from pyspark.ml.param import Param, Params, TypeConverters

# name: (what it says, converter, default); the defaults must equal the JVM's.
PREDICTION = {
    "net": (
        'text of the net\'s prototxt; "": the net that the solver names',
        TypeConverters.toString,
        "",
    ),
    "featuresCol": (
        "column that feeds the data layer's first top; others are fed by columns of their names, "
        "and those of CoSData as the layer says",
        TypeConverters.toString,
        "features",
    ),
    "labelCol": (
        "column that feeds the data layer's second top in training",
        TypeConverters.toString,
        "label",
    ),
    "idCol": (
        'column that identifies a row; "": rows are known by their bytes',
        TypeConverters.toString,
        "",
    ),
    "outputCols": (
        "blobs that transform adds as columns of their names (array<float>); none: what the net "
        "computes at its end",
        TypeConverters.toListString,
        [],
    ),
    "predictionCol": (
        "column for the index of the first output's largest value, or for the value itself if "
        'there is only one; "": none',
        TypeConverters.toString,
        "prediction",
    ),
    "resize": (
        "resize encoded images to the size that the data layer declares, instead of refusing those "
        "of another size",
        TypeConverters.toBoolean,
        False,
    ),
    "batchSize": (
        "rows that transform computes at a time; 0: the net's batch",
        TypeConverters.toInt,
        0,
    ),
    "threadsPerWorker": ("threads of each task; 0: spark.task.cpus", TypeConverters.toInt, 0),
}

TRAINING = {
    "solver": ("text of the solver's prototxt", TypeConverters.toString, ""),
    "weights": (
        'path of a caffemodel to start from; "": the net\'s fillers',
        TypeConverters.toString,
        "",
    ),
    "snapshot": (
        'path of a solverstate to go on from, with weights; "": step 0',
        TypeConverters.toString,
        "",
    ),
    "numWorkers": (
        "tasks that train together; 0: as many as can run at once",
        TypeConverters.toInt,
        0,
    ),
    "shards": (
        "shards of the data, each with the net's batch; the weights depend on them and not on "
        "numWorkers; 0: numWorkers",
        TypeConverters.toInt,
        0,
    ),
    "syncMode": (
        "how the ranks keep in step: allreduce, average, easgd, diloco, hierarchical or auto; "
        '"": what the solver\'s sync { } says, else allreduce',
        TypeConverters.toString,
        "",
    ),
    "syncPeriod": (
        "iterations from one exchange to the next, of modes whose replicas train on their own "
        "between them; 0: the solver's, else 10",
        TypeConverters.toInt,
        0,
    ),
    "syncHistory": (
        "what becomes of the replicas' history at an exchange: kept, averaged or reset; "
        '"": what the solver says, else kept',
        TypeConverters.toString,
        "",
    ),
    "syncOptions": (
        "further fields of the solver's sync { } as prototxt, such as "
        "\"moving_rate: 0.1 wire: 'bfloat16'\"",
        TypeConverters.toString,
        "",
    ),
    "syncParamFile": (
        "Hadoop path of a DeepSparkParam file (period, moving_rate, ...), for easgd unless "
        'syncMode names another mode; "": none',
        TypeConverters.toString,
        "",
    ),
    "survivors": (
        "average, easgd, diloco: when an executor is lost the others go on without its rows, and "
        "it joins again when it is back, instead of a new attempt of all from the newest "
        "checkpoint",
        TypeConverters.toBoolean,
        False,
    ),
    "engine": (
        "what carries the training: barrier, one stage whose tasks talk to each other; or rounds, "
        "for average and diloco: ordinary jobs, which need no port between executors and take "
        "these as they come and go",
        TypeConverters.toString,
        "barrier",
    ),
    "encrypt": (
        "whether what travels between the ranks is encrypted (TLS 1.3): on, off, or auto: when "
        "Spark's own traffic is, by spark.network.crypto.enabled, spark.ssl.rpc.enabled or "
        "spark.ssl.enabled",
        TypeConverters.toString,
        "auto",
    ),
    "connection": (
        "what connects the ranks of different hosts: ethernet (TCP), or infiniband: UCX if all "
        "executors have its library, libucp.so.0, and encrypt is off, else TCP",
        TypeConverters.toString,
        "ethernet",
    ),
    "maxIter": (
        "steps to train to; 0: the solver's max_iter, or epochs",
        TypeConverters.toInt,
        0,
    ),
    "epochs": ("passes over the table, instead of maxIter; 0: not used", TypeConverters.toInt, 0),
    "requireGpu": (
        "refuse to train without a GPU, instead of using the CPU",
        TypeConverters.toBoolean,
        False,
    ),
    "seed": (
        "seed of everything random, unless the solver has random_seed",
        TypeConverters.toInt,
        1,
    ),
    "checkpointDir": (
        'Hadoop path for checkpoints, reachable by driver and executors; "": Spark\'s checkpoint '
        "folder",
        TypeConverters.toString,
        "",
    ),
    "resume": (
        "go on from the newest checkpoint of an interrupted fit with the same solver, net, "
        "columns, shards and seed in checkpointDir; give it the same table",
        TypeConverters.toBoolean,
        False,
    ),
    "checkpointInterval": (
        "steps from one checkpoint to the next; 0: the solver's snapshot",
        TypeConverters.toInt,
        0,
    ),
    "validationIndicatorCol": (
        "boolean column, true for rows that are not trained on but tested on, every test_interval "
        'steps of the solver or once an epoch; "": none',
        TypeConverters.toString,
        "",
    ),
    "events": (
        'path prefix of JSONL and TensorBoard files that the driver writes; "": none',
        TypeConverters.toString,
        "",
    ),
    "peerTimeout": (
        "milliseconds of silence of a peer that count as its loss",
        TypeConverters.toInt,
        6000,
    ),
}


def _getter(name: str):
    def get(self):
        return self.getOrDefault(name)

    get.__doc__ = f"The value of {name}."
    return get


def _setter(name: str):
    def set_(self, value):
        return self._set(**{name: value})

    set_.__doc__ = f"Sets {name}; returns the object."
    return set_


def with_params(table: dict, setters: bool):
    """A class decorator: adds the params of a table with their getters and, if wanted, setters."""

    def decorate(cls):
        for name, (doc, converter, _) in table.items():
            capital = name[0].upper() + name[1:]
            setattr(cls, name, Param(Params._dummy(), name, doc, converter))
            setattr(cls, f"get{capital}", _getter(name))
            if setters:
                setattr(cls, f"set{capital}", _setter(name))
        return cls

    return decorate


def with_keywords(*tables: dict):
    """A class decorator: __init__ and setParams take the params of the tables as keywords."""
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name, (_, _, default) in (item for table in tables for item in table.items()):
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(name, kind, default=default))
    signature = inspect.Signature(parameters)

    def of_known_names(method):
        @functools.wraps(method)
        def call(self, **keywords):
            signature.bind(self, **keywords)  # TypeError for another name
            return method(self, **keywords)

        call.__signature__ = signature
        return call

    def decorate(cls):
        cls.__init__ = of_known_names(cls.__init__)
        cls.setParams = of_known_names(cls.setParams)
        return cls

    return decorate


class CheckedParams:
    """Of a stage with a stage on the JVM, which refuses at once what a param cannot be."""

    def _set(self, **values):
        before = self._paramMap.copy()
        super()._set(**values)
        try:
            for param in map(self.getParam, values if self._java_obj is not None else ()):
                if self.isSet(param):  # None sets nothing
                    value = self._paramMap[param]
                    self._java_obj.set(self._make_java_param_pair(param, value))
        except Exception:
            self._paramMap = before
            raise
        return self


def defaults(table: dict) -> dict:
    """The default values of a table, by name."""
    return {name: default for name, (_, _, default) in table.items()}
