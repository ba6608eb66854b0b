# SPDX-License-Identifier: Apache-2.0
"""A standalone Spark cluster of this machine: each worker a process of its own, with one executor.

Where network namespaces can be made, master and driver live in one and each worker in another, so
that links can be cut and slowed; else all are on loopback. Spark's local folders and the
checkpoints are on a disk of 64 MB where one can be mounted.
"""

import contextlib
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
JAR = ROOT / "jvm" / "spark" / "target" / "cafetiere-spark.jar"
MARK = "CAFETIERE_CHAOS"
DISK_MB = 64
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"

_spec = importlib.util.spec_from_file_location("rig_network", ROOT / "tools/rig/network.py")
rig = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rig)


class Cluster:
    """A context manager: a master and `workers` workers, numbered from 1; 0 is the driver's host.

    `folder` is made, and holds logs, work and the disk. `lacks` tells which kinds of faults cannot
    be had here, and why.
    """

    def __init__(self, folder: pathlib.Path, workers: int):
        self.folder = folder
        self.workers = workers
        self.lacks: dict[str, str] = {}
        self.disk = folder / "disk"
        self.local = self.disk / "local"
        self.temporary = folder / "tmp"
        self.master = ""
        self._mark = uuid.uuid4().hex
        self._network = None
        self._mounted = False
        self._daemons: list[subprocess.Popen] = []

    def __enter__(self):
        """Makes the hosts and the disk, then starts Spark's daemons."""
        for part in ("disk", "tmp", "log", "work"):
            (self.folder / part).mkdir(parents=True)
        try:
            self._make_network()
            self._mount()
            self.local.mkdir()
            self._start_daemons()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        """Ends what was started, newest first, and removes hosts and disk."""
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in self._daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(20)
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for daemon in self._daemons:
            daemon.wait()
        if self._network:
            self._network.__exit__()
        if self._mounted:
            # Lazily: whoever still has a file open there ends a moment later.
            subprocess.run(["umount", "-l", self.disk], check=True)

    def start(self, host: int, command: list, log: str, **popen) -> subprocess.Popen:
        """Starts a command on a host, with what it says on stderr in the log of that name."""
        where = self.address(host)
        environment = {
            **os.environ,
            MARK: self._mark,
            "PYTHONPATH": str(ROOT / "python"),
            "SPARK_LOCAL_IP": where,
            "SPARK_LOCAL_HOSTNAME": where,
            "SPARK_LOCAL_DIRS": str(self.local),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{JAVA_OPTIONS} -Djava.io.tmpdir={self.temporary}",
            "TMPDIR": str(self.temporary),
        }
        enter = self._network.enter(host) if self._network else []
        with open(self.folder / "log" / log, "a") as file:
            return subprocess.Popen([*enter, *command], env=environment, stderr=file, **popen)

    def address(self, host: int) -> str:
        """The address of a host."""
        return self._network.address(host) if self._network else "127.0.0.1"

    def settings(self) -> dict[str, str]:
        """What a session on this cluster needs of spark.*."""
        options = f"{JAVA_OPTIONS} -Djava.io.tmpdir={self.temporary}"
        return {
            "spark.master": self.master,
            "spark.driver.host": self.address(0),
            "spark.driver.bindAddress": self.address(0),
            "spark.driver.extraClassPath": str(JAR),
            "spark.executor.extraClassPath": str(JAR),
            "spark.plugins": "cafetiere.spark.CafetierePlugin",
            "spark.driver.extraJavaOptions": options,
            "spark.executor.extraJavaOptions": options,
            "spark.executor.memory": "512m",
            "spark.executor.heartbeatInterval": "3s",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            # Rows lie in files on the disk that may be full.
            "spark.cafetiere.rowMemory": "64k",
            # Work spreads over the workers, so that a fault on one is felt.
            "spark.locality.wait": "0",
        }

    def executor(self, worker: int) -> int | None:
        """The process id of a worker's executor that is not stopped; None while there is none."""
        parent = str(self._daemons[worker].pid)
        for pid in self.executors():
            with contextlib.suppress(OSError):
                stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
                state, its_parent = stat.rsplit(")", 1)[1].split()[:2]
                if its_parent == parent and state not in "TZ":
                    return pid
        return None

    def daemon(self, worker: int) -> int:
        """The process id of a worker, whose executors are its children."""
        return self._daemons[worker].pid

    def executors(self) -> list[int]:
        """The process ids of all executors."""
        return [pid for pid in self.processes() if "CoarseGrainedExecutorBackend" in words(pid)]

    def sessions(self) -> list[int]:
        """The process ids of all drivers, executors and what they have started."""
        daemons = {daemon.pid for daemon in self._daemons}
        return [pid for pid in self.processes() if pid not in daemons]

    def processes(self) -> list[int]:
        """All that runs on behalf of this cluster, but for what has ended and is not waited for."""
        mark, found = f"{MARK}={self._mark}".encode(), []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
        return found

    def stacks(self) -> list[str]:
        """Writes the stacks of the sessions' JVMs into the logs; returns where."""
        written = []
        for pid in self.sessions():
            if "/java " in words(pid):
                written.append(str(self.folder / "log" / f"stack-{pid}"))
                with open(written[-1], "w") as file:
                    file.write(f"{words(pid)}\n")
                    file.flush()
                    # One that is stopped does not answer.
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        command = ["jstack", str(pid)]
                        subprocess.run(command, stdout=file, stderr=file, timeout=20)
        return written

    def cut(self, worker: int):
        """From now on all that a worker's host sends or is sent is lost."""
        self._network.drop(worker)

    def slow(self, worker: int, mbit: float):
        """From now on a worker's link has this rate, both ways."""
        limit = ["root", "tbf", "rate", f"{mbit}mbit", "burst", "16kb", "latency", "50ms"]
        for where in self._ends(worker):
            run("tc", "-n", *where[:1], "qdisc", "replace", "dev", *where[1:], *limit)

    def join(self, worker: int):
        """Ends cut()."""
        run("ip", "-n", self._network.switch, "link", "set", f"p{worker}", "master", "br0")

    def hasten(self, worker: int):
        """Ends slow()."""
        for where in self._ends(worker):
            run("tc", "-n", *where[:1], "qdisc", "delete", "dev", *where[1:], "root")

    def _ends(self, worker):
        return (self._network.hosts[worker], "eth0"), (self._network.switch, f"p{worker}")

    def _make_network(self):
        reason = "no ip and tc (iproute2) here"
        if shutil.which("ip") and shutil.which("tc"):
            try:
                network = rig.Network(self.workers + 1, rig.LINKS["cores"])
                self._network = network.__enter__()
                return
            except subprocess.CalledProcessError as refused:
                reason = f"no right to make network namespaces: {refused}"
        self.lacks.update(cut=reason, slow=reason)

    def _mount(self):
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", self.disk]
        if (
            shutil.which("mount")
            and subprocess.run(command, stderr=subprocess.PIPE).returncode == 0
        ):
            self._mounted = True
        else:
            self.lacks["disk"] = "no right to mount a small disk"

    def _start_daemons(self):
        spark_class = pathlib.Path(os.environ["SPARK_HOME"]) / "bin" / "spark-class"
        deploy = "org.apache.spark.deploy"
        common = ["--port", "0", "--webui-port", "0"]
        master = [spark_class, f"{deploy}.master.Master", "--host", self.address(0), *common]
        self._daemons.append(self.start(0, master, "master"))
        self.master = self._await_line(r"Starting Spark master at (spark://\S+)", "master")
        for i in range(1, self.workers + 1):
            worker = [spark_class, f"{deploy}.worker.Worker", "--host", self.address(i), *common]
            worker += ["--cores", "1", "--memory", "1g", "--work-dir", self.folder / "work"]
            self._daemons.append(self.start(i, [*worker, self.master], f"worker{i}"))
        for i in range(1, self.workers + 1):
            self._await_line(r"Successfully registered with master (\S+)", f"worker{i}")

    def _await_line(self, pattern, log):
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            found = re.search(pattern, (self.folder / "log" / log).read_text())
            if found:
                return found[1]
            time.sleep(0.2)
        raise TimeoutError(f"'{pattern}' is not in {self.folder}/log/{log} after 120 s")


def words(pid: int) -> str:
    """A process's command line, with spaces; empty when it has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def run(*command):
    """Runs a command that must succeed."""
    subprocess.run(command, check=True)
