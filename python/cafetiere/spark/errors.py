# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the driver's JVM as Python's."""

import contextlib

from pyspark.errors import UnknownException

from cafetiere._library import Error

try:
    from py4j.protocol import Py4JJavaError
except ImportError:  # the thin client of Spark Connect has no JVM
    Py4JJavaError = ()

_REFUSED = "cafetiere.core.CafetiereException"
_FILE = "java.io.UncheckedIOException"


@contextlib.contextmanager
def translated():
    """Raises what the JVM says in its own words, without the stack of the JVM.

    What the engine refuses or cannot do is a cafetiere.Error, what happens to files an OSError. The
    exception that PySpark raised, with the stack, is the ``__context__``. All others stay as they
    are: PySpark translates Spark's own and wrong arguments, and the rest are faults. Spark Connect
    does not send the code of an error, which is 1 there.
    """
    try:
        yield
    except Py4JJavaError as error:
        java = error.java_exception
        kind = java.getClass().getName()
        if kind == _REFUSED:
            raise Error(java.getMessage(), java.code().ordinal()) from None
        if kind == _FILE:
            raise OSError(java.getMessage()) from None
        raise
    except UnknownException as error:
        message = str(error).partition("\n\nJVM stacktrace:")[0]
        for kind, ours in ((_REFUSED, Error), (_FILE, OSError)):
            if message.startswith(f"({kind}) "):
                raise ours(message[len(kind) + 3 :]) from None
        raise
