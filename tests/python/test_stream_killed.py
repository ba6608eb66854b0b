# SPDX-License-Identifier: Apache-2.0
"""A stream of a table's rows whose driver is killed twice: each row is in the sink once."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from test_doors import FEATURES, visitors

from cafetiere import tables
from cafetiere.spark.ml import CaffeClassifier

pytestmark = pytest.mark.long  # run by ./test faults

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = 20  # and ten batches: the last one compacts the sink's log
IN_A_FILE = 150
ROWS = IN_A_FILE * FILES
SECONDS = 180


def members(group):
    """The command lines of a process group's processes, of those that have not ended."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, of = (process / "stat").read_text().rpartition(") ")[2].split()[:3]
            if int(of) == group and state not in "ZX":
                yield (process / "cmdline").read_bytes()


def rows_in(files):
    return sum(pyarrow.parquet.read_metadata(file).num_rows for file in files)


class Query:
    """A folder with a checkpoint and a sink, and the drivers that run there one after another."""

    def __init__(self, folder):
        self.folder, self.out, self.temporary = folder, folder / "out", folder / "tmp"
        self.driver = None
        self.temporary.mkdir()

    def start(self):
        names = {
            "PYTHONPATH": os.pathsep.join((str(ROOT / "python"), str(ROOT / "tests/python"))),
            # What killed processes leave goes where the test's folder goes.
            "JDK_JAVA_OPTIONS": f"-Djava.io.tmpdir={self.temporary}",
            "TMPDIR": str(self.temporary),
        }
        command = [sys.executable, ROOT / "tests/python/stream_driver.py", self.folder]
        with self._log().open("a") as log:
            self.driver = subprocess.Popen(
                command,
                cwd=self.folder,
                env=os.environ | names,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self.driver

    def kill_when(self, moment):
        """Starts a driver and kills it with its executor; held still, they stay in the moment."""
        driver, end = self.start(), time.monotonic() + SECONDS
        while True:
            assert driver.poll() is None and time.monotonic() < end, self.said()
            if moment():
                os.killpg(driver.pid, signal.SIGSTOP)
                if moment():
                    break
                os.killpg(driver.pid, signal.SIGCONT)
            time.sleep(0.001)
        assert sum(b"CoarseGrainedExecutorBackend" in line for line in members(driver.pid)) == 1
        os.killpg(driver.pid, signal.SIGKILL)
        assert driver.wait() == -signal.SIGKILL
        while any(members(driver.pid)):
            assert time.monotonic() < end, "killed processes do not end"
            time.sleep(0.01)
        assert moment()

    def run_to_the_end(self):
        assert self.start().wait(SECONDS) == 0, self.said()

    def end(self):
        if self.driver:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.driver.pid, signal.SIGKILL)
            self.driver.wait()

    def _log(self):
        return self.folder / "driver.log"

    def said(self):
        return self._log().read_text()[-5_000:]

    def batches(self, log):
        """The numbers in a log of batches; every tenth of a sink's is called N.compact."""
        names = (path.name.removesuffix(".compact") for path in (self.folder / log).glob("[0-9]*"))
        return {int(name) for name in names}

    def files(self):
        """The files in the sink's folder whose writer came to the end."""
        return {path for path in self.out.glob("*.parquet") if path.read_bytes().endswith(b"PAR1")}

    def committed(self):
        """The files of the sink that its log has."""
        found = set()
        for path in (self.out / "_spark_metadata").glob("[0-9]*"):
            _, *lines = path.read_text().splitlines()
            found |= {self.out / pathlib.Path(json.loads(line)["path"]).name for line in lines}
        return found

    def is_scored_but_not_committed(self):
        """Whether rows of a batch can be read in the folder that the sink does not have yet."""
        begun = len(self.batches("out/_spark_metadata")) >= 2
        return begun and bool(self.files() - self.committed())

    def is_committed_but_not_ended(self):
        """Whether the sink has a batch that the checkpoint has begun, and not ended."""
        ended = self.batches("checkpoint/commits")
        new = self.batches("out/_spark_metadata") - ended
        return len(ended) >= 4 and bool(new)


@pytest.fixture
def query(tmp_path):
    query = Query(tmp_path)
    yield query
    query.end()


def test_a_query_whose_driver_is_killed_twice_scores_each_row_once(spark, query):
    columns = visitors(ROWS)
    table = pyarrow.table({"id": range(ROWS), **columns, "label": [i % 3 for i in range(ROWS)]})
    arriving, saved = query.folder / "in", query.folder / "model"
    arriving.mkdir()
    for i in range(FILES):
        rows = table.slice(IN_A_FILE * i, IN_A_FILE)
        pyarrow.parquet.write_table(rows, arriving / f"{i}.parquet")
    rows = spark.read.parquet(str(arriving))
    model = CaffeClassifier(numWorkers=2, maxEpochs=2, featuresCols=FEATURES).fit(rows)
    model.write().save(str(saved))

    query.kill_when(query.is_scored_but_not_committed)
    loose = query.files() - query.committed()
    query.kill_when(query.is_committed_but_not_ended)
    assert rows_in(query.committed()) < ROWS
    query.run_to_the_end()
    # That batch was scored again, and no other; the sink does not have what was there of it.
    assert query.files() - query.committed() == loose
    assert rows_in(query.files()) == ROWS + rows_in(loose) > ROWS

    scored = spark.read.parquet(str(query.out)).orderBy("id").collect()
    assert [row.id for row in scored] == list(range(ROWS))
    assert scored == model.transform(rows).orderBy("id").collect()
    alone = tables.TableModel.load(saved)
    probabilities = np.array([row.probability.toArray() for row in scored])
    assert probabilities.tobytes() == alone.scores(columns).astype(float).tobytes()
    assert [row.predictedLabel for row in scored] == alone.predict(columns)[0]
