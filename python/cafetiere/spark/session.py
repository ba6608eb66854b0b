# SPDX-License-Identifier: Apache-2.0
"""Sessions that have the jar."""

import contextlib
import os

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from cafetiere.spark.jar import jar_path

try:
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
except ImportError:  # the thin client of Spark Connect has no JVM
    SparkContext = None

_PLUGIN = "cafetiere.spark.CafetierePlugin"
_CATALOG = "spark.sql.catalog.cafetiere", "cafetiere.spark.sql.Functions"
_EXTENSIONS = "spark.sql.extensions", "cafetiere.spark.sql.Extensions"


def session_builder() -> "SparkSession.Builder":
    """A SparkSession.builder whose new session has our jar and plugin in addition to the user's.

    A client of Spark Connect gets a session of a server, which has the jar.

    Raises FileNotFoundError where there is no jar, and OSError where none can be written.
    """
    if not is_remote():
        jar_path()
    return SparkSession.builder


def add_to_new_sessions() -> None:
    """From now on every session that this process starts gets our jar and plugin.

    They are appended after Spark has put together what files, flags and environment say, and before
    the builder's settings replace that: any one of these places alone would drop the others' jars.
    A gateway that the caller brings belongs to somebody else, and is left alone like a server for
    Spark Connect.
    """
    if SparkContext is None:
        return
    original = SparkContext._ensure_initialized.__func__

    def ensure_initialized(cls, instance=None, gateway=None, conf=None):
        original(cls, instance, gateway, conf)
        if instance is None or gateway is not None or "SPARK_LOCAL_REMOTE" in os.environ:
            return
        # What goes wrong here, require_jar() tells when a class is used.
        with contextlib.suppress(OSError, Py4JError):
            _add(cls._jvm, conf)

    SparkContext._ensure_initialized = classmethod(ensure_initialized)


def _add(jvm, conf) -> None:
    """Adds jar and plugin to a JVM in which no context runs, and to the conf of the next one."""
    jar = jar_path()
    properties = jvm.java.lang.System
    if jar not in (properties.getProperty("spark.jars") or "").split(","):
        if _can_load(jvm, _PLUGIN):
            return  # the user has seen to it
        url = jvm.java.io.File(jar).toURI().toURL()
        jvm.Thread.currentThread().getContextClassLoader().addURL(url)
    lists = [("spark.jars", jar), ("spark.plugins", _PLUGIN)]
    if properties.getProperty(_CATALOG[0]) is None:
        lists.append(_CATALOG)
    if pyspark.__version__.startswith("3."):
        lists.append(_EXTENSIONS)  # from 4.0 on, Spark finds them in the jar
    for key, ours in lists:
        listed = properties.getProperty(key)
        properties.setProperty(key, _appended(listed, ours))
        if conf is not None:
            conf.set(key, _appended(conf.get(key, listed), ours))


def _appended(listed, ours: str) -> str:
    """A list with commas, with ours at its end unless it is there."""
    entries = [entry.strip() for entry in (listed or "").split(",") if entry.strip()]
    return ",".join(entries if ours in entries else [*entries, ours])


def _can_load(jvm, java_class: str) -> bool:
    try:
        jvm.Thread.currentThread().getContextClassLoader().loadClass(java_class)
    except Py4JError as error:
        if "ClassNotFoundException" not in str(error):
            raise
        return False
    return True


def require_table(data) -> None:
    """Raises TypeError unless this is a DataFrame of Spark."""
    if isinstance(data, DataFrame):
        return
    kind = f"{type(data).__module__}.{type(data).__qualname__}"
    raise TypeError(
        f"a DataFrame of Spark is needed, not {kind}: spark.createDataFrame makes one of what "
        "pandas and Arrow hold, and cafetiere.tables.fit learns from that without Spark"
    )


def require_jar(java_class: str) -> None:
    """Raises unless the running session can load one of our classes.

    A server of Spark Connect says so itself, once it is asked for one.
    """
    if is_remote():
        return
    try:
        spark = SparkSession.active()  # which other threads than the one that made it have, too
    except PySparkRuntimeError as error:
        raise RuntimeError(
            "no Spark session runs; make one first: "
            "spark = cafetiere.spark.session_builder().getOrCreate()"
        ) from error
    if _can_load(spark._jvm, java_class):
        return
    conf = spark.sparkContext.getConf()
    jars = _appended(conf.get("spark.jars"), jar_path())
    plugins = _appended(conf.get("spark.plugins"), _PLUGIN)
    raise RuntimeError(
        "the running Spark session does not have Cafetiere's jar; import cafetiere.spark before "
        f"the session starts, or start it with --conf spark.jars={jars} "
        f"--conf spark.plugins={plugins}"
    )
