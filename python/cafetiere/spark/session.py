# SPDX-License-Identifier: Apache-2.0
"""The jar, and sessions that have it."""

import pathlib

from pyspark.sql import SparkSession

JAR = "cafetiere-spark.jar"


def jar_path() -> str:
    """Path of the jar: the one inside this package, or the one a source tree has built."""
    package = pathlib.Path(__file__).resolve().parent.parent
    candidates = [
        package / "jars" / JAR,
        package.parent.parent / "jvm" / "spark" / "target" / JAR,
    ]
    for path in candidates:
        if path.exists():
            return str(path)
    raise FileNotFoundError(
        f"{JAR} is neither in the package nor in a built source tree (looked at "
        f"{', '.join(map(str, candidates))}); install the wheel, or run tools/build in the tree"
    )


def session_builder() -> "SparkSession.Builder":
    """A SparkSession.builder whose session has our jar on the driver and the executors."""
    return SparkSession.builder.config("spark.jars", jar_path())


def require_jar(java_class: str) -> None:
    """Raises unless the running session can load one of our classes."""
    spark = SparkSession.getActiveSession()
    if spark is None:
        raise RuntimeError(
            "no Spark session runs; make one first: "
            "spark = cafetiere.spark.session_builder().getOrCreate()"
        )
    try:
        loader = spark._jvm.Thread.currentThread().getContextClassLoader()
        loader.loadClass(java_class)
    except Exception as error:
        if "ClassNotFoundException" not in str(error):
            raise
        raise RuntimeError(
            "the running Spark session does not have Cafetiere's jar; stop it and set "
            f"spark.jars={jar_path()} before it starts, or make the session with "
            "cafetiere.spark.session_builder()"
        ) from None
