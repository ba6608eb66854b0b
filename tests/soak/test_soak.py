# SPDX-License-Identifier: Apache-2.0
"""What 200 fits and transforms of one session leave behind: part `soak` of ./test --full.

Driver, executors and the engine are one JVM here, so its numbers are those of all three. The heap
is fixed and touched from the start, and the room for compiled code is so small that it is full
before the first count: each of Spark's queries brings code of its own, 10 MiB in 150 fits. What
RssAnon grows by is other memory.
"""

import contextlib
import gc
import os
import pathlib
import re
import subprocess
import time
from collections import Counter

import pytest
from blobs import NET, ROWS, points, solver

from cafetiere.spark import CaffeEstimator, session_builder

SOLVER = solver(20)
ENGINES = (
    {"engine": "barrier"},
    {"engine": "rounds", "syncMode": "average", "syncPeriod": 5},
    {"engine": "barrier", "survivors": True, "syncMode": "average", "syncPeriod": 5},
)
FITS = 200
WARM = 50  # fits after which nothing may grow any more
RSS_MIB = 10
# Spark cleans up in threads of its own after a collection, and its pools keep a thread for 60 s.
SETTLED_SECONDS = 75
SETTLE_SECONDS = 300


@pytest.fixture
def session(tmp_path):
    options = "-Xms512m -XX:+AlwaysPreTouch -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    options += f" -XX:ReservedCodeCacheSize=30m -Djava.io.tmpdir={tmp_path}"
    spark = (
        session_builder()
        .master("local[2]")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.extraJavaOptions", options)
        .config("spark.local.dir", str(tmp_path / "local"))
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    yield spark
    spark.stop()


class Process:
    """What the session's JVM holds, by kind and name."""

    def __init__(self, spark, folder):
        self.jvm = spark._jvm
        self.folder = folder
        self.proc = pathlib.Path(f"/proc/{self.jvm.ProcessHandle.current().pid()}")
        self.rss_mib()  # the first jcmd has the JVM start a thread that listens to such

    def settled(self) -> dict[str, Counter]:
        """What it holds once that has not changed for a while of garbage collections."""
        begun = changed = time.monotonic()
        held = self.held()
        while time.monotonic() < min(changed + SETTLED_SECONDS, begun + SETTLE_SECONDS):
            gc.collect()  # proxies of objects in the JVM
            self.jvm.System.gc()
            time.sleep(3)
            before, held = held, self.held()
            if sizes(held) != sizes(before):
                changed = time.monotonic()
        return held

    def held(self) -> dict[str, Counter]:
        maps = (self.proc / "maps").read_text().splitlines()
        return {
            "threads": Counter(map(comm, (self.proc / "task").iterdir())),
            "descriptors": Counter(map(target, (self.proc / "fd").iterdir())),
            "mapped files": Counter({line.split(None, 5)[5] for line in maps if "/" in line}),
            "temporary files": Counter(str(p) for p in self.folder.rglob("*") if p.is_file()),
            "broadcasts": Counter(self._broadcasts()),
        }

    def rss_mib(self) -> float:
        # What malloc has been given back and keeps: 10 to 40 MiB, at one time more than at another.
        subprocess.run(["jcmd", self.proc.name, "System.trim_native_heap"], check=True)
        status = (self.proc / "status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+)", status)[1]) / 1024

    def _broadcasts(self) -> set[str]:
        manager = self.jvm.org.apache.spark.SparkEnv.get().blockManager()
        entries, ids = manager.blockInfoManager().entries(), set()
        while entries.hasNext():
            ids.update(re.findall(r"^broadcast_\d+", entries.next()._1().name()))
        return ids


def sizes(held):
    return {kind: sum(names.values()) for kind, names in held.items()}


def comm(task):
    """A thread's name; threads of a pool share one."""
    with contextlib.suppress(OSError):
        return re.sub(r"\d+", "N", (task / "comm").read_text().strip())
    return "ended"


def target(descriptor):
    """What a descriptor is open on."""
    with contextlib.suppress(OSError):
        return re.sub(r":\[\d+\]", "", os.readlink(descriptor))
    return "closed"


def fit_and_transform(table, params):
    model = CaffeEstimator(solver=SOLVER, net=NET, numWorkers=2, outputCols=["ip"], **params).fit(
        table
    )
    assert model.transform(table).filter("prediction = label").count() > ROWS / 2


def test_nothing_grows(session, tmp_path):
    points().to_parquet(tmp_path / "table")
    table = session.read.parquet(str(tmp_path / "table"))
    process = Process(session, tmp_path)
    for done in range(1, FITS + 1):
        fit_and_transform(table, ENGINES[done % len(ENGINES)])
        if done == WARM:
            warm, warm_mib = process.settled(), process.rss_mib()
    end, end_mib = process.settled(), process.rss_mib()
    told = [f"RssAnon {warm_mib:.1f} MiB after {WARM} fits, {end_mib:.1f} after {FITS}"]
    told += [f"{n} {kind}, {sizes(end)[kind]} at the end" for kind, n in sizes(warm).items()]
    grown = {kind: n for kind, n in sizes(end).items() if n > sizes(warm)[kind]}
    told += [f"{kind}: {(end[kind] - warm[kind]).most_common(10)}" for kind in grown]
    print("\n".join(told))
    assert end_mib - warm_mib <= RSS_MIB and not grown, told
