# SPDX-License-Identifier: Apache-2.0
"""Ranks on unlike machines agree on what they generate code for, and train the same weights."""

import json
import os
import pathlib
import subprocess
import sys

import cafetiere

SCRIPT = """
import json, sys
from cafetiere.spark import CaffeEstimator, session_builder
from pyspark.sql import functions as f

spark = (
    session_builder()
    .master("local-cluster[2,1,1024]")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    # Each executor reads its own file of JVM options.
    .config("spark.executor.extraJavaOptions", "@" + sys.argv[1] + "/executor-{{EXECUTOR_ID}}")
    .getOrCreate()
)
net = '''
layer { name: "data" type: "MemoryData" top: "data" top: "label"
  memory_data_param { batch_size: 8 channels: 40 height: 1 width: 1 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
'''
solver = 'base_lr: 0.1 lr_policy: "fixed" max_iter: 20 random_seed: 1'
rows = spark.range(101).select(
    f.array([f.sin(f.col("id") * (i + 1)) for i in range(40)]).alias("features"),
    (f.col("id") % 10).cast("int").alias("label"),
)
model = CaffeEstimator(solver=solver, net=net, numWorkers=2).fit(rows)
print(json.dumps({key: model.result[key] for key in ("sha256", "instruction_set", "executors")}))
spark.stop()
"""


def train(folder: pathlib.Path, limits: list[str]) -> dict:
    """What two executors train when each is told what its machine can do at most."""
    for executor, limit in enumerate(limits):
        options = f"-XX:TieredStopAtLevel=1 -Dcafetiere.instructionSet={limit}\n"
        (folder / f"executor-{executor}").write_text(options)
    package = pathlib.Path(cafetiere.__file__).parents[1]
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_an_older_machine_sets_the_pace(tmp_path):
    mixed = train(tmp_path, ["avx2", "avx"])
    assert mixed["instruction_set"] == "avx"
    assert mixed["executors"] == 2
    # Code for avx rounds products before it adds them, so a rank that kept to avx2 would show.
    assert mixed == train(tmp_path, ["avx", "avx"])
