# SPDX-License-Identifier: Apache-2.0
"""What to do with which solver."""

from py4j.protocol import Py4JError, Py4JJavaError

from com.yahoo.ml.caffe._jvm import jvm_class, python_value, scala_context, strings


class Config:
    """CaffeOnSpark's configuration, with all properties of com.yahoo.ml.caffe.Config.

    ``args``: a dict of flags, with or without the dash. A switch's value is dropped, unless it is
    False or None, which leave the switch out; a list is joined by commas.
    """

    def __init__(self, sc, args=None):
        java = jvm_class(sc, "Config")
        context = scala_context(sc)
        made = java(context) if args is None else java(context, strings(sc, _flags(args)))
        self.__dict__.update(_sc=sc, _java=made)

    def __getattr__(self, name):
        """A property's value."""
        if name.startswith("_"):
            raise AttributeError(name)
        return python_value(getattr(self._java, _known(self._java, name, name))())

    def __setattr__(self, name, value):
        """Sets a property; raises TypeError where the value is of another type."""
        setter = getattr(self._java, _known(self._java, f"{name}_$eq", name))
        given = strings(self._sc, value) if isinstance(value, (list, tuple)) else value
        misfit = TypeError(
            f"{value!r}, a {type(value).__name__}, is no value for {name} of Config, which is now"
            f" {getattr(self, name)!r}"
        )
        if value is None and isinstance(getattr(self, name), int):  # and bool
            raise misfit
        try:
            setter(given)
        except Py4JJavaError:
            raise
        except Py4JError:  # no method for such a value
            raise misfit from None

    def __str__(self):
        """A line for each property."""
        return self._java.toString()


def _known(java, method, name):
    if method not in dir(java):
        raise AttributeError(f"Config has no property {name} of that kind")
    return method


def _flags(args):
    if not hasattr(args, "items"):
        raise TypeError(
            'the flags of Config are a dict, such as {"conf": "solver.prototxt", "train": True},'
            f" and not a {type(args).__name__}"
        )
    words = []
    for name, value in args.items():
        if value is False or value is None:
            continue
        words.append(name if name.startswith("-") else f"-{name}")
        if value is not True:
            is_list = isinstance(value, (list, tuple))
            words.append(",".join(map(str, value)) if is_list else value)
    return words
