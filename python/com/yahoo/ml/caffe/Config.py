# SPDX-License-Identifier: Apache-2.0
"""What to do with which solver."""

from com.yahoo.ml.caffe._jvm import jvm_class, python_value, scala_context, strings


class Config:
    """CaffeOnSpark's configuration, with all properties of com.yahoo.ml.caffe.Config.

    ``args``: a dict of flags, with or without the dash. A switch's value is dropped, unless it is
    False or None, which leave the switch out.
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
        """Sets a property."""
        if isinstance(value, (list, tuple)):
            value = strings(self._sc, value)
        getattr(self._java, _known(self._java, f"{name}_$eq", name))(value)

    def __str__(self):
        """A line for each property."""
        return self._java.toString()


def _known(java, method, name):
    if method not in dir(java):
        raise AttributeError(f"Config has no property {name} of that kind")
    return method


def _flags(args):
    words = []
    for name, value in args.items():
        if value is False or value is None:
            continue
        words.append(name if name.startswith("-") else f"-{name}")
        if value is not True:
            words.append(value)
    return words
