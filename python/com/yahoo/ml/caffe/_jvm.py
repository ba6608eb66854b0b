# SPDX-License-Identifier: Apache-2.0
"""Values between Python and the classes of the jar."""

from py4j.java_collections import JavaArray
from py4j.java_gateway import JavaClass, JavaObject
from pyspark.sql import DataFrame, SparkSession


def jvm_class(sc, name):
    """A class of CaffeOnSpark's package, or "tools.CLASS", in the JVM of a SparkContext.

    Raises RuntimeError where its jar is missing.
    """
    found = sc._jvm.com.yahoo.ml.caffe
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, JavaClass):
        return found
    raise RuntimeError(
        f"the JVM has no class com.yahoo.ml.caffe.{name}: start the session with --jars"
        " cafetiere-compat_2.13.jar (2.12 for Spark 3.5)"
    )


def scala_context(sc):
    """The SparkContext that Scala knows."""
    return sc._jsc.sc()


def strings(sc, values):
    """An array of strings in the JVM."""
    array = sc._gateway.new_array(sc._jvm.String, len(values))
    for i, value in enumerate(values):
        array[i] = str(value)
    return array


def python_value(value):
    """Lists for arrays and sequences, a dict for a map; other values as they are."""
    if isinstance(value, JavaArray):
        return [python_value(element) for element in value]
    if not isinstance(value, JavaObject):
        return value
    methods = dir(value)
    if "keysIterator" in methods:
        pairs = _elements(value.iterator())
        return {pair._1(): python_value(pair._2()) for pair in pairs}
    if "prefixLength" in methods:  # of Scala's sequences alone
        return [python_value(element) for element in _elements(value.iterator())]
    return value


def _elements(iterator):
    while iterator.hasNext():
        yield iterator.next()


def data_frame(java_frame):
    """A DataFrame of PySpark."""
    return DataFrame(java_frame, SparkSession.builder.getOrCreate())
