# SPDX-License-Identifier: Apache-2.0
"""What the executors that this process has started hold in memory."""

import os
import pathlib


def executors():
    """The processes of the executors, which this one has started."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        # Executors belong to workers of the driver's JVM, whose parent this process is.
        if b"CoarseGrainedExecutorBackend" in command and is_below(process, os.getpid()):
            found.append(process)
    return found


def is_below(process, ancestor):
    """Whether it has that process as a parent, or a parent's parent."""
    pid = int(process.name)
    while pid > 1 and pid != ancestor:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(") ")[2].split()[1])
    return pid == ancestor


def resident(process, name):
    """Bytes of a line of /proc/PID/status."""
    for line in (process / "status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def rise_of(fit):
    """Runs `fit`: what it gives, and the mean rise of the executors' memory."""
    processes = executors()
    for process in processes:
        (process / "clear_refs").write_text("5")  # VmHWM is what is resident now
    before = [resident(process, "VmRSS") for process in processes]
    result = fit()
    rises = [
        resident(process, "VmHWM") - was for process, was in zip(processes, before, strict=True)
    ]
    return result, sum(rises) / len(rises)
