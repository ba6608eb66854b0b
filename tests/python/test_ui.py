# SPDX-License-Identifier: Apache-2.0
"""The tab of runs in Spark's UI, while they go on, and in its History Server afterwards."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from connect_server import free_port
from program import ROOT

JAR = ROOT / "jvm/spark/target/cafetiere-spark.jar"
NAME = "<script>alert(1)</script>"

# Trains a net whose output has a hostile name; looks at the tab while it trains and when it has.
PROGRAM = """
import json, re, sys, threading, time, urllib.error, urllib.parse, urllib.request
from cafetiere.spark import CaffeEstimator, session_builder

spark = session_builder().master("local[2]").getOrCreate()
sc = spark.sparkContext
rows = spark.range(64).selectExpr("id", "array(id / 64D, id % 2) AS features", "id % 2 AS label")
net = '''
layer { name: "data" type: "MemoryData" top: "data" top: "label"
  memory_data_param { batch_size: 8 channels: 2 height: 1 width: 1 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "msra" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "NAME" type: "Accuracy" bottom: "ip" bottom: "label" top: "NAME"
  include { phase: TEST } }
'''.replace("NAME", sys.argv[1])
solver = "base_lr: 0.1 lr_policy: 'fixed' max_iter: 1000000000 test_interval: 1000 test_iter: 1"

def get(path):
    with urllib.request.urlopen(f"{sc.uiWebUrl}/cafetiere/{path}") as answer:
        return answer.read().decode()

def framed(path):
    # What a page has in its frame.
    with urllib.request.urlopen(f"{sc.uiWebUrl}/cafetiere/{path}") as answer:
        source = re.search('<iframe[^>]* src="([^"]+)"', answer.read().decode())[1]
        where = urllib.parse.urljoin(answer.url, source)
    with urllib.request.urlopen(where) as answer:
        return answer.read().decode()

seen = {}
def watch():
    try:
        while "live" not in seen and "why" not in seen:
            told = json.loads(spark._jvm.cafetiere.spark.ui.RunStore.told(sc._jsc.sc()))
            if told and "progress" in told[0]:
                seen["live"] = told[0]
                seen["list"] = get("")
                seen["page"] = get(f"run?id={told[0]['run']}")
                seen["report"] = framed(f"run?id={told[0]['run']}")
            time.sleep(0.05)
    finally:
        sc.cancelAllJobs()

watcher = threading.Thread(target=watch)
watcher.start()
estimator = CaffeEstimator(
    net=net, solver=solver, idCol="id", numWorkers=1, validationIndicatorCol="held"
)
held = rows.selectExpr("*", "id % 8 = 0 AS held")
try:
    estimator.fit(held)
    seen["why"] = "it ended"
except Exception as e:
    seen["why"] = str(e)
watcher.join()
assert "live" in seen, seen["why"]
model = estimator.setMaxIter(3000).fit(held)
seen["events"] = model.events
sc._jsc.sc().listenerBus().waitUntilEmpty()
seen["list_at_the_end"] = get("")
runs = re.findall(r"run/\\?id=(\\w+)", seen["list_at_the_end"])
run = next(id for id in runs if id != seen["live"]["run"])
seen["run"] = run
seen["told"] = get(f"events?id={run}")
seen["report_at_the_end"] = get(f"report?id={run}")
seen["framed"] = framed(f"run?id={run}")
try:
    get("run?id=none")
except urllib.error.HTTPError as e:
    seen["unknown"] = e.code
seen["app"] = sc.applicationId
json.dump(seen, open(sys.argv[2], "w"))
spark.stop()
"""


def newest_spark(folder):
    """An environment with a newer Spark than those of the tests."""
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    packages = (ROOT / "tools/requirements.txt").read_text().split()
    needed = [one for one in packages if one.startswith(("numpy==", "tqdm==", "protobuf=="))]
    install = [venv / "bin/pip", "install", "-q", "pyspark==4.3.0", *needed]
    subprocess.run(install, check=True)
    return venv


def spark_of(venv):
    homes = list((ROOT / venv).glob("lib/python3*/site-packages/pyspark"))
    if not homes:
        pytest.skip(f"there is no {venv}; tools/setup --spark35 makes it")
    return homes[0]


def spark_process(venv, folder, logs, settings=""):
    """How subprocess runs a program of `venv` in `folder` that keeps its events in `logs`."""
    conf = folder / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(
        "spark.ui.port 0\n"
        "spark.eventLog.enabled true\n"
        f"spark.eventLog.dir {logs.as_uri()}\n"
        f"{settings}\n"
    )
    environment = {
        "PYTHONPATH": str(ROOT / "python"),
        "SPARK_CONF_DIR": str(conf),
        "SPARK_HOME": str(spark_of(venv)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(ROOT / venv / "bin/python"),
    }
    return {"cwd": folder, "env": os.environ | environment, "text": True}


@contextlib.contextmanager
def history(home, logs, folder):
    """Spark's History Server of those logs, with our jar; gives its address."""
    port = free_port()
    log = (folder / "history.log").open("w")
    server = subprocess.Popen(
        [home / "bin/spark-class", "org.apache.spark.deploy.history.HistoryServer"],
        env={
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_CLASSPATH": str(JAR),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HISTORY_OPTS": f"-Dspark.history.fs.logDirectory={logs.as_uri()}"
            f" -Dspark.history.ui.port={port}",
        },
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        log.close()


def patient_get(url, seconds=90):
    """An answer from a server that may still be starting."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return answer.read().decode()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


@pytest.mark.parametrize("venv", [".venv", pytest.param(".venv35", marks=pytest.mark.long)])
def test_runs_are_seen_live_and_in_replay(venv, tmp_path):
    check_runs_are_seen(venv, tmp_path)


@pytest.mark.long
def test_a_newer_spark_shows_them_too(tmp_path):
    check_runs_are_seen(newest_spark(tmp_path), tmp_path)


def check_runs_are_seen(venv, tmp_path):
    home = spark_of(venv)
    logs = tmp_path / "logs"
    logs.mkdir()
    done = subprocess.run(
        [ROOT / venv / "bin/python", "-c", PROGRAM, NAME, tmp_path / "seen.json"],
        capture_output=True,
        timeout=300,
        **spark_process(
            venv, tmp_path, logs, "spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1"
        ),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads((tmp_path / "seen.json").read_text())

    live = seen["live"]
    assert "cancel" in seen["why"] and live["progress"]["max_iter"] == 10**9
    assert f"run/?id={live['run']}" in seen["list"] and "running" in seen["list"]
    assert f"report/?id={live['run']}" in seen["page"] and 'http-equiv="refresh"' in seen["page"]
    assert "<svg" in seen["report"]
    assert "cancelled: " in seen["list_at_the_end"] and "ended " in seen["list_at_the_end"]
    assert "3000 of 3000" in seen["list_at_the_end"]
    assert seen["unknown"] >= 400
    assert seen["framed"] == seen["report_at_the_end"]

    told = [json.loads(line) for line in seen["told"].splitlines()]
    assert told == seen["events"]
    for page in ("list", "page", "report", "report_at_the_end"):
        assert NAME not in seen[page]
    assert "&lt;script&gt;" in seen["report_at_the_end"]

    with history(home, logs, tmp_path) as address:
        tab = f"{address}/history/{seen['app']}/cafetiere"
        patient_get(address)
        listed = patient_get(f"{tab}/")
        assert re.findall(r"run/\?id=(\w+)", listed).count(seen["run"]) == 1
        assert patient_get(f"{tab}/events?id={seen['run']}") == seen["told"]
        assert patient_get(f"{tab}/report?id={seen['run']}") == seen["report_at_the_end"]
