# SPDX-License-Identifier: Apache-2.0
"""An ONNX server, made as docs/onnx.md says: its answers are those of the engine."""

import contextlib
import datetime
import json
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest

from cafetiere import tables

pytest.importorskip("mlflow", reason="needs mlflow-skinny, which ./test mlflow has")
ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTION = (
    (ROOT / "docs/onnx.md").read_text().partition("### An ONNX server\n")[2].partition("\n## ")[0]
)
FIT, KEEP, SERVE, ASK, ANSWER = re.findall(r"^```text\n(.*?)^```$", SECTION, re.M | re.S)
BINARIES = pathlib.Path(sys.executable).parent
EPOCH = datetime.date(1970, 1, 1)
MISSING_DATE = np.iinfo(np.int64).min
SECONDS = 120  # for a server to start


@contextlib.contextmanager
def running(command, folder, environment):
    """A server that is ended in any case; its log is in the folder."""
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield server
    finally:
        server.terminate()  # MLflow ends its worker
        server.wait(SECONDS)


def wait_for(url, server, log):
    """Returns when the server is ready."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text()
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    pytest.fail(log.read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def port(folder):
    """Where a server of the page's model answers."""
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "out").mkdir()
    environment = {
        **os.environ,
        "PATH": f"{BINARIES}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "python"),
    }
    prepared = {"cwd": folder, "env": environment, "check": True}
    subprocess.run(["sh", "-e", "-c", FIT], **prepared)
    subprocess.run([sys.executable, "-c", KEEP], **prepared)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = str(free.getsockname()[1])
    command = shlex.split(SERVE.replace("5000", number))
    with running(command, folder, environment) as server:
        wait_for(f"http://127.0.0.1:{number}/ping", server, folder / "server.log")
        yield number


def asked(port, data):
    """What the server predicts."""
    _, _, url, _, header, _, _ = shlex.split(ASK)
    name, value = header.split(": ")
    request = urllib.request.Request(url.replace("5000", port), data.encode(), {name: value})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return json.load(answer)["predictions"]


def test_the_page_s_question_has_the_page_s_answer(port):
    said, told = asked(port, shlex.split(ASK)[-1]), json.loads(ANSWER)["predictions"]
    assert said["predictedLabel"] == told["predictedLabel"]
    # Not exactly: on other processors a training ends with other bits.
    assert np.allclose(said["probability"], told["probability"], atol=0.01)


def test_raw_rows_are_answered_as_the_engine_does(port, folder):
    rows = tables.read(ROOT / "examples/tables/visitors.csv")
    for name, cells in rows.items():
        rows[name] = [*cells, None]
    rows["city"][::7] = ["Zürich, which nobody has seen"] * len(rows["city"][::7])
    days = [cell and datetime.date.fromisoformat(cell) - EPOCH for cell in rows["since"]]
    inputs = {
        "age": [cell and float(cell) for cell in rows["age"]],
        "city": [cell or "" for cell in rows["city"]],
        "since": [MISSING_DATE if day is None else day.days for day in days],
    }
    arrays = {name: [[cell] for cell in cells] for name, cells in inputs.items()}
    assert [None] in arrays["age"] and [""] in arrays["city"] and [MISSING_DATE] in arrays["since"]
    said = asked(port, json.dumps({"inputs": arrays}))
    model = tables.TableModel.load(folder / "out/visitors.model")
    assert said["predictedLabel"] == model.predict(rows)[0]
    assert np.abs(np.array(said["probability"]) - model.scores(rows)).max() < 1e-5
