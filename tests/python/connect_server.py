# SPDX-License-Identifier: Apache-2.0
"""A server of Spark Connect with our jar, and thin clients of it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time

import pytest
from test_cli import ROOT

JAR = ROOT / "jvm/spark/target/cafetiere-spark.jar"
CLIENT = ROOT / ".venv-connect/bin/python"
# The setting of what a server keeps of models in memory.
CACHED_BYTES = "spark.connect.session.connectML.mlCache.memoryControl.maxInMemorySize"
START_SECONDS = 120
SECONDS = 300


@contextlib.contextmanager
def connect_server(folder, settings, environment=()):
    """Starts a server as its users do, with its log in `folder`; gives its address."""
    if not CLIENT.exists():
        pytest.skip("there is no .venv-connect; tools/setup --spark35 makes it")
    (home,) = (ROOT / ".venv").glob("lib/python3*/site-packages/pyspark")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
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
    command = [home / "bin/spark-submit"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    names = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=names | dict(environment),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _await(port, server, folder / "server.log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _await(port, server, log):
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise AssertionError(log.read_text()[-5_000:])


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
