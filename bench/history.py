# SPDX-License-Identifier: Apache-2.0
"""What the benches measured: one JSON object a line, with the time, the commit and the machine."""

import datetime
import json
import os
import pathlib
import platform
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
HISTORY = ROOT / "out" / "bench" / "history.jsonl"


def machine():
    """A description of the machine, for readers."""
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    release = platform.freedesktop_os_release()
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages / 2**30),
        "os": release.get("PRETTY_NAME", platform.platform()),
    }


def commit():
    """The commit that was measured, with a + if files differ from it."""
    command = [
        "git",
        "-C",
        str(ROOT),
        "describe",
        "--always",
        "--abbrev=7",
        "--dirty=+",
        "--exclude=*",
    ]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"


def append(path, record):
    """Adds a record to a file, which is created if it does not exist."""
    now = datetime.datetime.now(datetime.UTC)
    whole = {
        "date": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit(),
        "machine": machine(),
        "load": round(os.getloadavg()[0], 1),
        **record,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(whole) + "\n")


def load(path):
    """The records of a file, oldest first."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def newest(records, keys):
    """The last record for each combination of these fields, in order of first appearance."""
    last = {}
    for record in records:
        last[tuple(record.get(key) for key in keys)] = record
    return list(last.values())
