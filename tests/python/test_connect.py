# SPDX-License-Identifier: Apache-2.0
"""Fits over Spark Connect: a server with our jar, and a client that has neither Java nor Spark."""

import json
import os
import select
import signal
import subprocess
import termios
import threading
import time

import pytest
from connect_nets import all_figures, fit_all
from connect_server import CACHED_BYTES, SECONDS, client, connect_server, run_client


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    settings = {
        "spark.master": "local-cluster[2,1,1024]",
        CACHED_BYTES: "1b",  # each use of a model reads it from the server's own disk
    }
    with connect_server(tmp_path_factory.mktemp("connect"), settings) as address:
        yield address


@pytest.fixture(scope="module")
def seen(server, tmp_path_factory):
    """What the client's program saw."""
    folder = tmp_path_factory.mktemp("client")
    return run_client(server, folder / "saved", folder / "seen.json")


def test_fits_are_those_of_a_classic_session(seen, spark):
    fitted = fit_all(spark)
    assert 'stage: "deploy"' in fitted["net"][0].getNet()
    expected = all_figures(fitted)
    assert seen["figures"] == json.loads(json.dumps(expected))


def test_models_are_saved_and_loaded(seen):
    assert seen["loaded"] == seen["figures"]
    assert seen["pipeline"] > 380


def test_a_model_tells_of_its_training(seen):
    assert seen["weights"] > 100 and 'stage: "deploy"' in seen["net"]
    assert seen["events"][-1] == "account" and seen["curve"] == seen["events"].count("progress") > 0
    assert seen["labels"] == ["over", "under"]
    assert seen["repr"].endswith(", numClasses=2")
    assert seen["core_hours"] > 0


def test_a_report_tells_of_runs(seen):
    run = seen["run"]
    assert run["state"] == "ended" and (run["step"], run["steps"]) == (60, 60)
    assert seen["is_its_own"] and seen["every_run"] == 3
    told = json.loads(run["summary"])
    assert told["account"] == seen["summary"]["account"]
    assert told["sha256"] == seen["figures"]["net"]["sha256"]


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("column", "the table has no column 'sid': did you mean 'id'?"),
        ("solver", 'SolverParameter has no field "max_iterations"'),
        ("word", 'optimizer is "adam" (did you mean "Adam"?)'),
        ("continuous", "Error: the label 'number' has "),
        ("file", "OSError: cannot read /no/net.onnx: "),
        ("list", "TypeError: a DataFrame of Spark is needed, not builtins.list: "),
        ("groupCol", "over Spark Connect: fit it in a session without Connect"),
        ("layers", "layers is an empty list, which Spark Connect cannot send"),
        ("explain", "over Spark Connect: ask it in a session without Connect"),
        ("setValidationData", "validationIndicatorCol"),
        ("fitFiles", "fit that table"),
        ("caffeModel", "save the model, and CaffeModel.load(path + '/net') is it"),
        ("exportOnnx", "load and export it in a session without Connect"),
    ],
)
def test_the_client_is_told_what_to_change(seen, what, sentence):
    assert sentence in seen["refused"][what].split("JVM stacktrace")[0]


def read_to_end(terminal):
    """Reads until the other side is closed, which is an error of a terminal."""
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:
        pass


def test_interrupting_the_cell_ends_the_run(server, seen):
    terminal, theirs = os.openpty()
    termios.tcsetwinsize(terminal, (24, 120))  # a bar is as wide as that
    process = client(server, "connect_interrupted.py", stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    try:
        shown = read_until(terminal, "loss=")
        process.send_signal(signal.SIGINT)
        # A terminal that nobody reads fills up, and its writer then waits without end.
        threading.Thread(target=read_to_end, args=(terminal,), daemon=True).start()
        output, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert "barrier, 2 shards" in shown and "rows/s=" in shown
    told = json.loads(output)
    assert told["interrupted"]
    assert told["run"]["state"] == "cancelled", told
    assert 0 < told["run"]["step"] < told["run"]["steps"] == 10**9
    assert told["steps"] == 60
    assert process.returncode == 1


@pytest.mark.long  # a kernel of its own
def test_a_notebook_shows_and_stops_a_fit(server):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with client(server, "connect_notebook.py", **pipes) as process:
        try:
            output, said = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0, said[-8_000:]
    seen = json.loads(output)
    _, stopped, run, fitted, summary = seen["outputs"]
    assert stopped[-1]["ename"] == "KeyboardInterrupt"
    assert run[0]["text"] == "cancelled True\n"
    assert fitted[-1]["text"] == "2000\n"
    assert summary[0]["data"]["text/html"].startswith("<iframe")
    bars = [text.replace("\u2007", " ") for text in seen["bars"]]
    assert any("2000/2000" in text and "loss=" in text and "rows/s=" in text for text in bars), bars
    assert bars[0].startswith("barrier, 2 shards")


def read_until(terminal, word):
    """What is drawn on a terminal, up to this word."""
    drawn = b""
    end = time.monotonic() + SECONDS
    while word not in drawn.decode(errors="replace") and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            drawn += os.read(terminal, 4096)
    assert word.encode() in drawn, drawn[-3_000:]
    return drawn.decode(errors="replace")
