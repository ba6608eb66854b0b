# SPDX-License-Identifier: Apache-2.0
"""Signals that arrive while the engine runs and calls Python back."""

import signal
import threading

_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGALRM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Deferred:
    """A context that puts off the Python handlers of signals to where an exception is not lost.

    Python runs a handler at the next bytecode of the main thread. During a call of the engine that
    is the first one of a callback, outside of any try, and ctypes drops what is raised there:
    Ctrl-C would have no effect. Within the context handlers run in run(), or at its end.
    """

    def __init__(self):
        self._previous = {}
        self._pending = []
        self._open = False

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            try:
                for number in _SIGNALS:
                    handler = signal.getsignal(number)
                    if callable(handler):
                        self._previous[number] = handler
                        signal.signal(number, self._arrived)
            except BaseException:  # of a handler whose turn has not come
                self._restore()
                raise
        return self

    def __exit__(self, *_):
        try:
            self._restore()
        except BaseException:  # of a handler that is back in its place
            self._restore()
            raise
        self._run_pending()

    def _restore(self):
        for number, handler in reversed(self._previous.items()):
            if signal.getsignal(number) == self._arrived:  # else a callback has set another
                signal.signal(number, handler)

    def _arrived(self, number, frame):
        self._pending.append((number, frame))
        if self._open:
            self._run_pending()

    def _run_pending(self):
        while self._pending:
            number, frame = self._pending.pop(0)
            self._previous[number](number, frame)

    def run(self, function, *arguments):
        """Calls a function; handlers that wait run first, and others as soon as they are due."""
        try:
            self._open = True
            self._run_pending()
            if function:
                function(*arguments)
        finally:
            self._open = False
