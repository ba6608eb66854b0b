# SPDX-License-Identifier: Apache-2.0
"""Timer: Caffe's stopwatch."""

import time


class Timer:
    """Measures the time between start() and stop()."""

    def __init__(self):
        self._begun = self._seconds = None

    def start(self):
        """Begins to measure."""
        self._begun = time.perf_counter()

    def stop(self):
        """Ends it."""
        self._seconds = time.perf_counter() - self._begun

    @property
    def ms(self):
        """Milliseconds between start() and stop()."""
        return self._seconds * 1e3
