# SPDX-License-Identifier: Apache-2.0
"""Fits on a cluster, with faults at their times."""

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time

import plan
from cluster import ROOT, Cluster

EXAMPLE = ROOT / "examples" / "quickstart" / "lenet_train_test.prototxt"
ROWS = 1_007
PERIOD = 5
PEER_TIMEOUT_MS = 3_000
FIT_SECONDS = 400  # a fit that takes longer hangs
START_SECONDS = 180
FULL = "No space left on device"
FULL_ENDS = 3  # fits in a row that may end for want of room, once there is some again
SOLVER = (
    'base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "inv" gamma: 0.0001 power: 0.75'
    ' random_seed: 7 snapshot_prefix: "lenet"'
)


class Broken(Exception):
    """A fit, or the start or end of a session, took too long; or a driver ended by itself."""


class Driver:
    """A driver's process with its session."""

    def __init__(self, cluster: Cluster):
        program = [sys.executable, pathlib.Path(__file__).with_name("driver.py")]
        command = [*program, json.dumps(cluster.settings())]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = cluster.start(0, command, "driver", start_new_session=True, **pipes)
        deadline = time.monotonic() + START_SECONDS
        while self.answer(1) is None:
            if time.monotonic() > deadline:
                raise Broken(f"no session after {START_SECONDS} s")

    def ask(self, fit: dict):
        """Has a fit begin."""
        self.process.stdin.write(json.dumps(fit) + "\n")
        self.process.stdin.flush()

    def answer(self, seconds: float) -> dict | None:
        """What the fit came to; None where it has not ended within these seconds."""
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            return None
        line = self.process.stdout.readline()
        if not line:
            raise Broken(f"the driver has ended with {self.process.wait()}")
        return json.loads(line)

    def kill(self):
        """SIGKILL to the driver: Python and the JVM."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Ends the session as its user would."""
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            raise Broken("the driver has not ended 60 s after its session was stopped") from None


class Fits:
    """Runs fits on a cluster one after the other; `tell` prints a line."""

    def __init__(self, cluster: Cluster, tell):
        self.cluster = cluster
        self.tell = tell
        self.table = cluster.folder / "table.parquet"
        plan.write_table(self.table, ROWS)
        self.driver = Driver(cluster)

    def run(self, engine: str, mode: str, name: str, faults=()) -> tuple[dict, list]:
        """What a fit with these faults came to, and the faults that happened."""
        return _Fit(self, engine, mode, name, faults).run()

    def await_executors(self):
        """Waits until every worker has an executor that runs."""
        deadline = time.monotonic() + START_SECONDS
        for worker in range(1, self.cluster.workers + 1):
            while self.cluster.executor(worker) is None:
                if time.monotonic() > deadline:
                    raise Broken(f"worker {worker} has had no executor for {START_SECONDS} s")
                time.sleep(0.2)


class _Fit:
    def __init__(self, fits: Fits, engine: str, mode: str, name: str, faults):
        self.fits = fits
        self.cluster = fits.cluster
        self.checkpoints = self.cluster.disk / "checkpoints" / name
        self.pending = list(faults)
        self.happened: list[plan.Fault] = []
        self.steps = plan.STEPS[engine]
        self.newest = 0
        self.full = 0
        self.ends = contextlib.ExitStack()  # what ends faults that last
        self.over = 0.0  # when they are to end
        self.asked = {"table": str(fits.table), "params": self._params(engine, mode)}

    def run(self):
        deadline = time.monotonic() + FIT_SECONDS
        self.fits.driver.ask(self.asked)
        with self.ends:
            while time.monotonic() < deadline:
                answer = self.fits.driver.answer(0.05)
                if answer is not None:
                    if not self._is_full(answer):
                        self._go_on()
                        return answer, self.happened
                    self._take_up()
                    self.fits.driver.ask(self.asked)
                self._proceed()
            raise Broken(f"the fit has not ended after {FIT_SECONDS} s")

    def _take_up(self):
        """Ends what filled the disk; the next fit goes on from what is stored."""
        self.fits.tell("  the fit has ended for want of room; the next one resumes")
        self.full += 1
        if self.full > FULL_ENDS:
            raise Broken(f"{self.full} fits in a row have ended for want of room")
        self.ends.close()

    def _go_on(self):
        """Continues what is still stopped: Spark would wait for it when the session stops."""
        for process in self.cluster.executors():
            _signal(process, signal.SIGCONT)

    def _is_full(self, answer):
        was_full = any(fault.kind == "disk" for fault in self.happened)
        return was_full and FULL in answer.get("error", "")

    def _proceed(self):
        """Ends the fault that lasts when it is time, and begins the next."""
        if time.monotonic() >= self.over:
            self.ends.close()
        with contextlib.suppress(FileNotFoundError):  # they come and go
            for path in self.checkpoints.glob("run-*/step-*"):
                self.newest = max(self.newest, int(path.name.removeprefix("step-")))
        if time.monotonic() < self.over or not self.pending or self.newest == self.steps:
            return
        fault = self.pending[0]
        victim = self.cluster.executor(fault.worker)
        if self.newest < fault.step or victim is None:
            return
        self.pending.pop(0)
        if fault.kind in self.cluster.lacks:
            self.fits.tell(f"  skipped: {fault} ({self.cluster.lacks[fault.kind]})")
            return
        time.sleep(fault.delay_ms / 1000)
        self.fits.tell(f"  {fault} (now at {self.newest})")
        self.happened.append(fault)
        self.full = 0
        getattr(self, f"_{fault.kind}")(fault, victim)

    def _kill(self, _, victim):
        _signal(victim, signal.SIGKILL)

    def _stop(self, _, victim):
        _signal(victim, signal.SIGSTOP)

    def _pause(self, fault, victim):
        _signal(victim, signal.SIGSTOP)
        self._lasts(fault, _signal, victim, signal.SIGCONT)

    def _cut(self, fault, _):
        self.cluster.cut(fault.worker)
        self._lasts(fault, self.cluster.join, fault.worker)

    def _slow(self, fault, _):
        self.cluster.slow(fault.worker, fault.mbit)
        self._lasts(fault, self.cluster.hasten, fault.worker)

    def _disk(self, fault, _):
        filler = self.cluster.disk / "filler"
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 16))
        self._lasts(fault, filler.unlink)

    def _driver(self, *_):
        self.fits.driver.kill()
        self.fits.driver = Driver(self.cluster)
        self.fits.driver.ask(self.asked)

    def _lasts(self, fault, end, *arguments):
        self.over = time.monotonic() + fault.seconds
        self.ends.callback(end, *arguments)

    def _params(self, engine, mode):
        # The default, 0.9, is too much for this net; auto may choose diloco.
        outer = "outer_momentum: 0.5" if mode in ("diloco", "auto") else ""
        # downpour adds up what its workers do.
        solver = SOLVER.replace("momentum: 0.9", "momentum: 0.5") if mode == "downpour" else SOLVER
        return {
            "solver": solver,
            "net": EXAMPLE.read_text(),
            "featuresCol": "image",
            "engine": "rounds" if engine == "rounds" else "barrier",
            "survivors": engine == "survivors",
            "syncMode": mode,
            "syncPeriod": PERIOD,
            "syncOptions": outer,
            "numWorkers": plan.RANKS,
            "shards": plan.RANKS,
            "maxIter": self.steps,
            "peerTimeout": PEER_TIMEOUT_MS,
            "checkpointDir": self.checkpoints.as_uri(),
            "checkpointInterval": plan.INTERVAL,
            "resume": True,
        }


def _signal(process: int, number: int):
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)
