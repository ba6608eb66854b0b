# SPDX-License-Identifier: Apache-2.0
"""A server of Spark Connect with our jar, and thin clients of it."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest
from program import ROOT

JAR = ROOT / "jvm/spark/target/cafetiere-spark.jar"
CLIENT = ROOT / ".venv-connect/bin/python"
CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
# The setting of what a server keeps of models in memory.
CACHED_BYTES = "spark.connect.session.connectML.mlCache.memoryControl.maxInMemorySize"
START_SECONDS = 120
SECONDS = 300


@contextlib.contextmanager
def connect_server(folder, settings, environment=()):
    """Starts a server in the foreground, with its log in `folder`; gives its address."""
    home, port = _spark_home(), free_port()
    command = [home / "bin/spark-submit", "--class", CLASS, *_options(port, settings)]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=_names(home) | dict(environment),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _await(port, lambda: server.poll() is None, folder / "server.log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@contextlib.contextmanager
def connect_daemon(folder, settings):
    """Starts and stops a server by the commands that Spark's own scripts for it consist of."""
    home, port = _spark_home(), free_port()
    daemon = [home / "sbin/spark-daemon.sh"]
    begin = ["submit", CLASS, "1", "--name", "Spark Connect server", *_options(port, settings)]
    places = {"SPARK_LOG_DIR": str(folder), "SPARK_PID_DIR": str(folder)}
    run = {"cwd": folder, "env": _names(home) | places, "check": True, "timeout": START_SECONDS}
    with (folder / "start.log").open("w") as log:
        subprocess.run(daemon + begin, stdout=log, stderr=log, **run)
    (pid_file,) = folder.glob("*.pid")
    process = pathlib.Path("/proc", pid_file.read_text().strip())
    (log,) = folder.glob("*.out")
    try:
        _await(port, process.exists, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        subprocess.run([*daemon, "stop", CLASS, "1"], **run)
    _await_end(process)


def _spark_home():
    if not CLIENT.exists():
        pytest.skip("there is no .venv-connect; tools/setup --spark35 makes it")
    (home,) = (ROOT / ".venv").glob("lib/python3*/site-packages/pyspark")
    return home


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _names(home):
    return {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}


def _options(port, settings):
    settings = {
        "spark.jars": str(JAR),
        "spark.plugins": "cafetiere.spark.CafetierePlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.executor.memory": "1g",
        # The tests are too short to earn back what the second compiler costs.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        **settings,
    }
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]


def _await(port, lives, log):
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and lives():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise AssertionError(log.read_text()[-5_000:])


def _await_end(process):
    end = time.monotonic() + START_SECONDS
    while process.exists():
        assert time.monotonic() < end, "the stopped server does not end"
        time.sleep(0.1)


def client(address, program, *words, **options):
    """A process of the thin client that runs a program of this folder."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": os.pathsep.join((str(ROOT / "python"), str(ROOT / "tests/python"))),
        "SPARK_REMOTE": address,
    }
    command = [CLIENT, ROOT / "tests/python" / program, *words]
    return subprocess.Popen(command, env=environment, text=True, **options)


def run_client(address, models, out) -> dict:
    """Runs connect_client.py with this folder for models; what it has written to the file `out`."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with client(address, "connect_client.py", str(models), out, **pipes) as process:
        try:
            output, _ = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0, output[-8_000:]
    return json.loads(out.read_text())
