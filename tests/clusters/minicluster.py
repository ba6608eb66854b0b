# SPDX-License-Identifier: Apache-2.0
"""Hadoop's mini cluster: HDFS and YARN in a JVM of their own, and how Spark is sent to it."""

import contextlib
import hashlib
import os
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = pathlib.Path(__file__).parent / "hadoop"
BUILT = ROOT / "build" / "minicluster"
START_SECONDS = 120
END_SECONDS = 30
# What Hadoop wants opened on Java 17.
JAVA_OPTIONS = [
    "-Xmx512m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Djava.net.preferIPv4Stack=true",
    "-Dlog4j2.level=WARN",
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "net", "util")),
]


class MiniCluster:
    """A context manager: one DataNode and two NodeManagers, their clients' settings in `conf`.

    `folder` is made, and holds all that the cluster writes: disks, logs, containers.
    """

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.conf = folder / "conf"
        self.log = folder / "log"

    def __enter__(self):
        """Starts it and waits until it is there."""
        self.conf.mkdir(parents=True)
        command = ["java", *JAVA_OPTIONS, "-cp", class_path(), "minicluster.MiniCluster", self.conf]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with open(self.log, "w") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stderr=log, **pipes)
        if self._process.stdout.readline() != "ready\n":
            self.__exit__()
            raise RuntimeError(f"the mini cluster has not started; its log is {self.log}")
        return self

    def __exit__(self, *_):
        """Has it end, and then what is left in containers."""
        self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pid in self._containers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def ask(self, *words) -> list[str]:
        """Has the cluster do something (see Commands.java); what it answers."""
        self._process.stdin.write("\t".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        status, *answer = self._process.stdout.readline().rstrip("\n").split("\t")
        if status != "ok":
            raise RuntimeError(f"{' '.join(map(str, words))}: {' '.join(answer)}")
        return answer

    def put(self, local: pathlib.Path, path: str):
        """Copies a file or folder to HDFS."""
        self.ask("put", local, path)

    def get(self, path: str, local: pathlib.Path) -> bytes:
        """Copies a file of HDFS to `local`; its bytes."""
        self.ask("get", path, local)
        return local.read_bytes()

    def files(self, folder: str) -> dict[str, int]:
        """The files below a folder of HDFS, and their sizes."""
        entries = (entry.rsplit(" ", 1) for entry in self.ask("list", folder))
        return {path: int(size) for path, size in entries}

    def executors(self) -> list[int]:
        """The process ids of Spark's executors, oldest first."""
        return self._containers(b"ExecutorBackend")

    def _containers(self, word: bytes = b"") -> list[int]:
        """The Java processes of containers that have a word in their command line, oldest first."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                program, _, words = (entry / "cmdline").read_bytes().partition(b"\0")
                if program.endswith(b"/java") and bytes(self.folder) in words and word in words:
                    found.append((os.stat(entry).st_mtime, int(entry.name)))
        return [pid for _, pid in sorted(found)]

    def outputs(self) -> str:
        """What all containers have written, for a failed test's message."""
        found = self.folder.glob("target/**/container_*/std*")
        return "\n".join(
            f"--- {path.parent.name} {path.name}\n{path.read_text(errors='replace')[-3_000:]}"
            for path in sorted(found)
        )


def class_path() -> str:
    """Compiles the cluster's program and fetches its jars, if that has not been done."""
    sources = sorted(path for path in SOURCES.rglob("*") if path.is_file())
    now = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    stamp, path = BUILT / "sha256", BUILT / "classpath"
    if not stamp.exists() or stamp.read_text() != now:
        command = [
            "mvn",
            "-B",
            "-q",
            "-Dstyle.color=never",
            "-f",
            SOURCES / "pom.xml",
            "process-classes",
        ]
        command += ["dependency:build-classpath", f"-Dmdep.outputFile={path}"]
        subprocess.run(command, check=True)
        stamp.write_text(now)
    return f"{BUILT / 'classes'}:{path.read_text().strip()}"


def wait_for(what: str, condition, seconds: float = 120):
    """The value of `condition()` as soon as it is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise TimeoutError(f"{what}: not within {seconds} s")
