# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while the driver's JVM works."""

import contextlib
import signal
import threading
import uuid

from pyspark.sql.utils import is_remote

_SECONDS = 0.5  # from one cancelling to the next


@contextlib.contextmanager
def interruptible(spark):
    """Ctrl-C cancels the jobs that the main thread starts within, and is raised once they are over.

    PySpark's own handler asks the JVM through the connection whose answer it interrupts: the job
    goes on, holds the executors, and the next answer is taken for another's. The second Ctrl-C is
    PySpark's again, for what does not end. A client of Spark Connect needs none of this.
    """
    previous = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if is_remote() or not in_main or not callable(previous):
        yield
        return
    context, tag, ended = spark.sparkContext, f"cafetiere-{uuid.uuid4()}", threading.Event()
    cancelling = threading.Thread(target=_cancel, args=(context, tag, ended), daemon=True)

    def interrupted(_number, _frame):
        signal.signal(signal.SIGINT, previous)
        cancelling.start()

    context.addJobTag(tag)
    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    except Exception:
        if cancelling.ident is None:
            raise
    finally:
        signal.signal(signal.SIGINT, previous)
        ended.set()
        context.removeJobTag(tag)
    if cancelling.ident is not None:
        cancelling.join()
        raise KeyboardInterrupt


def _cancel(context, tag, ended):
    """Cancels until all is over: between two jobs there is none to cancel."""
    while True:
        context.cancelJobsWithTag(tag)
        if ended.wait(_SECONDS):
            return
