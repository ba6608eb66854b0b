# SPDX-License-Identifier: Apache-2.0
"""The tab of runs as a browser draws it: part `browser` of ./test --full, which needs Chromium.

On both lines of Spark a net is trained whose layer has a name that would like to be a script. Then
its listeners hear of a longer run, whose every one of 10,000 steps was told. The pages are drawn
while the application lives and by the History Server; the pictures, wide and narrow, are in
out/browser for a person to look at, and the seconds are printed.
"""

import json
import re
import shutil
import subprocess
import time

import pytest
from program import ROOT
from test_ui import history, patient_get, spark_of, spark_process

STEPS = 10_000
NAME = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
PICTURES = ROOT / "out/browser"

PROGRAM = """
import json, random, sys, time
from cafetiere.spark import CaffeEstimator, session_builder

spark = session_builder().master("local[2]").getOrCreate()
rows = spark.range(64).selectExpr("id", "array(id / 64D, id % 2) AS features", "id % 2 AS label")
net = '''
layer { name: "data" type: "MemoryData" top: "data" top: "label"
  memory_data_param { batch_size: 8 channels: 2 height: 1 width: 1 } }
layer { name: 'NAME' type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "msra" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "right" type: "Accuracy" bottom: "ip" bottom: "label" top: 'NAME' }
'''.replace("NAME", sys.argv[1].replace("'", "\\\\'"))
solver = "base_lr: 0.1 lr_policy: 'fixed' max_iter: 2000"
model = CaffeEstimator(net=net, solver=solver, idCol="id", numWorkers=2).fit(rows)
told = model.events
one = next(event for event in told if event["event"] == "progress")
noise, steps = random.Random(1), int(sys.argv[2])
for step in range(1, steps + 1):
    loss = 2 / step**0.3 * noise.uniform(0.8, 1.2)
    told.append({**one, "step": step, "max_iter": steps, "loss": loss})
    told[-1]["ranks"] = {**one["ranks"], "step_ms": [noise.uniform(3, 4), noise.uniform(3, 9)]}
bus = spark.sparkContext._jsc.sc().listenerBus()
lines = "".join(json.dumps(event) + "\\n" for event in told)
update = spark._jvm.cafetiere.spark.ui.RunUpdate
now = int(time.time() * 1000)
result = json.dumps({"title": "a long one", "steps": steps})
bus.post(update("long", "a long one", 0, now, lines, result, "", "nobody", "ended"))
bus.waitUntilEmpty()
address = spark.sparkContext.uiWebUrl
print("READY", address, spark.sparkContext.applicationId, flush=True)
sys.stdin.read()
spark.stop()
"""


def chromium(*arguments):
    """What a browser without a window prints, and its seconds."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        pytest.skip("there is no Chromium; apt-get install chromium")
    begin = time.monotonic()
    done = subprocess.run(
        [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, time.monotonic() - begin


def drawn(url, picture):
    """The page as the browser made it of its text; leaves pictures."""
    chromium(f"--screenshot={PICTURES / picture}", "--window-size=1280,2200", url)
    chromium(f"--screenshot={PICTURES / f'narrow-{picture}'}", "--window-size=500,2200", url)
    page, seconds = chromium("--dump-dom", "--virtual-time-budget=5000", url)
    _, empty = chromium("--dump-dom", "--virtual-time-budget=5000", "about:blank")
    print(f"{picture}: {len(page):,} bytes, {seconds:.2f} s, the browser's own {empty:.2f} s")
    return page


def check_report(page):
    assert "<title>" in page and "<title>owned" not in page, "a name ran as a script"
    assert "&lt;script&gt;" in page and "&lt;img" in page
    assert "<img" not in page
    assert "Time of a step by rank" in page and "rank 1" in page
    lines = re.findall(r'<path class="line"[^>]* d="([^"]+)"', page) or re.findall(
        r'<polyline[^>]* points="([^"]+)"', page
    )
    assert max(len(re.findall(r"[\d.]+", line)) // 2 for line in lines) > 100, "a curve is short"


@pytest.mark.parametrize("venv", [".venv", ".venv35"])
def test_pages_are_drawn(venv, tmp_path):
    home = spark_of(venv)
    PICTURES.mkdir(parents=True, exist_ok=True)
    logs = tmp_path / "logs"
    logs.mkdir()
    line = venv.removeprefix(".venv") or "41"
    application = subprocess.Popen(
        [ROOT / venv / "bin/python", "-c", PROGRAM, NAME, str(STEPS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "log").open("w"),
        **spark_process(venv, tmp_path, logs),
    )
    with application:
        ready = next((line for line in application.stdout if line.startswith("READY")), None)
        assert ready, (tmp_path / "log").read_text()[-3000:]
        address, app = ready.split()[1:]
        told = patient_get(f"{address}/cafetiere/events?id=long").splitlines()
        assert sum(json.loads(event)["event"] == "progress" for event in told) > STEPS
        listed = drawn(f"{address}/cafetiere/", f"list-{line}.png")
        assert f"{STEPS} of {STEPS}" in listed
        drawn(f"{address}/cafetiere/run/?id=long", f"run-{line}.png")
        live = drawn(f"{address}/cafetiere/report/?id=long", f"report-{line}.png")
        check_report(live)
        application.stdin.close()
    with history(home, logs, tmp_path) as address:
        patient_get(address)
        tab = f"{address}/history/{app}/cafetiere"
        patient_get(f"{tab}/")
        drawn(f"{tab}/run/?id=long", f"history-{line}.png")
        replay = drawn(f"{tab}/report/?id=long", f"history-report-{line}.png")
        assert replay == live
