# SPDX-License-Identifier: Apache-2.0
"""The params of CaffeEstimator and CaffeModel, made of the JVM's table of them, params.json.

The wheel has the table, and params.pyi with the types of what is made here.
"""

import functools
import inspect
import json
import pathlib

from pyspark.ml.param import Param, Params, TypeConverters

from cafetiere.spark.session import require_jar

_TYPES = {
    "String": (str, TypeConverters.toString),
    "int": (int, TypeConverters.toInt),
    "long": (int, TypeConverters.toInt),
    "boolean": (bool, TypeConverters.toBoolean),
    "String[]": (list, TypeConverters.toListString),
}


def _table() -> dict:
    own = pathlib.Path(__file__).resolve().parent
    built = own.parents[2] / "jvm/spark/src/main/resources/cafetiere/spark"
    folder = own if (own / "params.json").exists() else built
    return json.loads((folder / "params.json").read_text())


TABLE = _table()


def defaults(*parts: str) -> dict:
    """The default values of parts of the table, by name."""
    return {param["name"]: param["default"] for part in parts for param in TABLE[part]}


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


def _with_params(part: str):
    """A class decorator: adds the params of a part of the table, with getters and setters."""

    def decorate(cls):
        for param in TABLE[part]:
            converter = _TYPES[param["type"]][1]
            doc = " ".join(param["doc"])
            setattr(cls, param["name"], Param(Params._dummy(), param["name"], doc, converter))
            for method in (_getter(param), _setter(param)):
                method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
                setattr(cls, method.__name__, method)
        return cls

    return decorate


def _with_keywords(method):
    """Has a method take every param as a keyword, and no other."""
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for param in (param for part in TABLE.values() for param in part):
        kind, annotation = inspect.Parameter.KEYWORD_ONLY, _TYPES[param["type"]][0]
        parameters.append(
            inspect.Parameter(param["name"], kind, default=param["default"], annotation=annotation)
        )
    signature = inspect.Signature(parameters)

    @functools.wraps(method)
    def call(self, **keywords):
        signature.bind(self, **keywords)  # TypeError for another name
        return method(self, **keywords)

    call.__signature__ = signature
    return call


@_with_params("shared")
class PredictionParams(Params):
    """The params that CaffeEstimator and CaffeModel share.

    The stage on the JVM refuses at once what a param cannot be.
    """

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


@_with_params("estimator")
class EstimatorParams(PredictionParams):
    """The params of a CaffeEstimator, which also takes them as keywords."""

    @_with_keywords
    def __init__(self, **params):
        super().__init__()
        require_jar("cafetiere.spark.CaffeEstimator")
        self._java_obj = self._new_java_obj("cafetiere.spark.CaffeEstimator", self.uid)
        self._setDefault(**defaults("shared", "estimator"))
        self.setParams(**params)

    @_with_keywords
    def setParams(self, **params):
        """Sets params by name; returns the estimator."""
        return self._set(**params)
