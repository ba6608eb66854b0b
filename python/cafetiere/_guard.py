# SPDX-License-Identifier: Apache-2.0
"""Exceptions of what the engine calls back, which may not pass through it."""

from cafetiere._library import Error, call
from cafetiere._signals import Deferred


class Guard:
    """Keeps the exceptions of callbacks, and those of signals meanwhile, for call() to raise."""

    def __init__(self):
        self.failure = None
        self._signals = Deferred()

    def run(self, function, *arguments):
        """Calls a function from within the engine: 0, or 1 if it failed, and `failure` is why."""
        try:
            self._signals.run(function, *arguments)
        except BaseException as failure:  # KeyboardInterrupt, too
            self.failure = failure
            return 1
        return 0

    def call(self, name, *arguments):
        """Calls the library; an exception of a callback becomes the cause of the Error."""
        self.failure = None
        outer, self._signals = self._signals, Deferred()
        try:
            with self._signals:
                call(name, *arguments)
        except Error as error:
            failure, self.failure = self.failure, None
            if failure is None:
                raise
            if not isinstance(failure, Exception):
                raise failure from None  # KeyboardInterrupt, SystemExit
            raise Error(str(error), error.code) from failure
        finally:
            self._signals = outer
