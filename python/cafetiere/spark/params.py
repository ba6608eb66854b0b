# SPDX-License-Identifier: Apache-2.0
"""The params of our stages, made of the JVM's tables of them, params.json and ml_params.json.

The wheel has the tables, and params.pyi with the types of what is made here.
"""

import copy
import functools
import inspect
import json
import pathlib

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.sql.utils import is_remote

from cafetiere.spark.session import require_jar

_TYPES = {
    "String": (str, TypeConverters.toString),
    "int": (int, TypeConverters.toInt),
    "long": (int, TypeConverters.toInt),
    "boolean": (bool, TypeConverters.toBoolean),
    "double": (float, TypeConverters.toFloat),
    "String[]": (list, TypeConverters.toListString),
    "int[]": (list, TypeConverters.toListInt),
    "double[]": (list, TypeConverters.toListFloat),
}


def _table(name: str, place: str) -> dict:
    own = pathlib.Path(__file__).resolve().parent
    built = own.parents[2] / "jvm/spark/src/main/resources/cafetiere/spark"
    file = own / name if (own / name).exists() else built / place
    return json.loads(file.read_text())


def _ml_table() -> dict:
    """The table of package ml, in which a bare name stands for a param of the other one."""
    named = {param["name"]: param for part in TABLE.values() for param in part}
    return {
        part: [named[param] if isinstance(param, str) else param for param in params]
        for part, params in _table("ml_params.json", "ml/params.json").items()
    }


TABLE = _table("params.json", "params.json")
ML_TABLE = _ml_table()


def defaults(*parts: str) -> dict:
    """The default values of parts of the table, by name."""
    return {param["name"]: param["default"] for part in parts for param in TABLE[part]}


def ml_defaults(*parts: str) -> dict:
    """The same of the table of package ml."""
    return {param["name"]: param["default"] for part in parts for param in ML_TABLE[part]}


def _text(param: dict) -> str:
    text = " ".join(param["doc"])
    since = f" Since {param['since']}." if "since" in param else ""
    return f"{text} Default: {param['default']!r}.{since}"


def _getter(param: dict):
    name, kind = param["name"], _TYPES[param["type"]][0]

    def get(self):
        return self.getOrDefault(name)

    get.__name__ = "get" + name[0].upper() + name[1:]
    get.__doc__ = f"The value of {name}. {_text(param)}"
    get.__annotations__ = {"return": kind}
    return get


def _setter(param: dict):
    name, kind = param["name"], _TYPES[param["type"]][0]

    def set_(self, value):
        return self._set(**{name: value})

    set_.__name__ = "set" + name[0].upper() + name[1:]
    set_.__doc__ = f"Sets {name}; returns the object. {_text(param)}"
    set_.__annotations__ = {"value": kind}
    return set_


def _with_params(params: list):
    """A class decorator: adds these params of a table, with getters and setters."""

    def decorate(cls):
        for param in params:
            converter = _TYPES[param["type"]][1]
            doc = " ".join(param["doc"])
            setattr(cls, param["name"], Param(Params._dummy(), param["name"], doc, converter))
            for method in (_getter(param), _setter(param)):
                method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
                setattr(cls, method.__name__, method)
        return cls

    return decorate


def _with_keywords(*parts: list):
    """Has a method take every param of these parts as a keyword, and no other."""
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for param in (param for part in parts for param in part):
        kind, annotation = inspect.Parameter.KEYWORD_ONLY, _TYPES[param["type"]][0]
        parameters.append(
            inspect.Parameter(param["name"], kind, default=param["default"], annotation=annotation)
        )
    signature = inspect.Signature(parameters)

    def decorate(method):
        @functools.wraps(method)
        def call(self, **keywords):
            signature.bind(self, **keywords)  # TypeError for another name
            return method(self, **keywords)

        call.__signature__ = signature
        return call

    return decorate


class _CheckedParams(Params):
    """Params whose values the stage on the JVM checks at once; over Spark Connect in fit.

    None as a value sets nothing.
    """

    def copy(self, extra=None):
        """A copy with the extra params, and with a stage of its own on the JVM."""
        if is_remote() or self._java_obj is None:
            return super().copy(extra)
        that = copy.copy(self)
        that._paramMap, that._defaultParamMap = {}, {}
        # First, as _set() tells the stage of each value.
        that._java_obj = self._java_obj.copy(self._empty_java_param_map())
        return self._copyValues(that, extra)

    def _set(self, **values):
        values = {name: value for name, value in values.items() if value is not None}
        for name, value in values.items():
            if hasattr(value, "to_proto"):  # a NetSpec
                values[name] = str(value.to_proto())
        before = self._paramMap.copy()
        super()._set(**values)
        if is_remote():
            self._take_out_empty_lists()
            return self
        try:
            for param in map(self.getParam, values if self._java_obj is not None else ()):
                value = self._paramMap[param]
                self._java_obj.set(self._make_java_param_pair(param, value))
        except Exception:
            self._paramMap = before
            raise
        return self

    def _take_out_empty_lists(self) -> None:
        """Spark Connect cannot send them: those that are defaults need not be sent."""
        for param in [param for param, value in self._paramMap.items() if value == []]:
            del self._paramMap[param]
            if self._defaultParamMap.get(param, []) != []:
                raise ValueError(
                    f"{param.name} is an empty list, which Spark Connect cannot send: give a list "
                    "with an entry, or fit in a session without Connect"
                )

    def _begin(self, java_class: str, defaults_: dict, params: dict) -> None:
        """Makes the stage on the JVM."""
        require_jar(java_class)
        self._java_obj = self._new_java_obj(java_class, self.uid)
        self._setDefault(**defaults_)
        self._set(**params)


@_with_params(TABLE["shared"])
class PredictionParams(_CheckedParams):
    """The params that CaffeEstimator and CaffeModel share."""


@_with_params(TABLE["estimator"])
class EstimatorParams(PredictionParams):
    """The params of a CaffeEstimator, which also takes them as keywords."""

    @_with_keywords(*TABLE.values())
    def __init__(self, **params):
        super().__init__()
        self._begin("cafetiere.spark.CaffeEstimator", defaults("shared", "estimator"), params)

    @_with_keywords(*TABLE.values())
    def setParams(self, **params):
        """Sets params by name; returns the estimator."""
        return self._set(**params)


@_with_params(ML_TABLE["model"])
class TableModelParams(_CheckedParams):
    """The params of what learns from tables, and of its models."""


@_with_params(ML_TABLE["classification"])
class ClassificationParams(TableModelParams):
    """The params of a CaffeClassifier and its model."""


@_with_params(ML_TABLE["regression"])
class RegressionParams(TableModelParams):
    """The params of a CaffeRegressor and its model."""


@_with_params(ML_TABLE["estimator"])
class TableParams(TableModelParams):
    """The params of a CaffeClassifier and a CaffeRegressor."""


_OF_CLASSIFIER = ("model", "classification", "estimator", "classifier")
_OF_REGRESSOR = ("model", "regression", "estimator", "regressor")


@_with_params(ML_TABLE["classifier"])
class ClassifierParams(ClassificationParams, TableParams):
    """The params of a CaffeClassifier, which also takes them as keywords."""

    @_with_keywords(*(ML_TABLE[part] for part in _OF_CLASSIFIER))
    def __init__(self, **params):
        super().__init__()
        self._begin("cafetiere.spark.ml.CaffeClassifier", ml_defaults(*_OF_CLASSIFIER), params)

    @_with_keywords(*(ML_TABLE[part] for part in _OF_CLASSIFIER))
    def setParams(self, **params):
        """Sets params by name; returns the classifier."""
        return self._set(**params)


@_with_params(ML_TABLE["regressor"])
class RegressorParams(RegressionParams, TableParams):
    """The params of a CaffeRegressor, which also takes them as keywords."""

    @_with_keywords(*(ML_TABLE[part] for part in _OF_REGRESSOR))
    def __init__(self, **params):
        super().__init__()
        self._begin("cafetiere.spark.ml.CaffeRegressor", ml_defaults(*_OF_REGRESSOR), params)

    @_with_keywords(*(ML_TABLE[part] for part in _OF_REGRESSOR))
    def setParams(self, **params):
        """Sets params by name; returns the regressor."""
        return self._set(**params)
