# SPDX-License-Identifier: Apache-2.0
"""A driver for test_hdfs.py: reads a database and trains, with HDFS as its only file system.

Its arguments are the session's settings as JSON, the solver and the net. Prints one line of JSON.
"""

import json
import pathlib
import sys

from cafetiere.spark import CaffeEstimator, CaffeModel, session_builder

RANGES = 4
TASKS = 100


def read(spark) -> dict:
    """Key and digest of each record in the order of the ranges, and who has read how much."""
    spark.sparkContext.setJobGroup("lmdb", "the database's records")
    options = {"raw": True, "partitions": RANGES}
    rows = spark.read.format("lmdb").options(**options).load("hdfs:///big_lmdb")
    # Key and value alone are read; the digests are made where they are.
    records = rows.selectExpr("cast(key as string) key", "sha2(value, 256) digest").collect()
    tracker = spark.sparkContext.statusTracker()
    (job,) = tracker.getJobIdsForGroup("lmdb")
    (stage,) = tracker.getJobInfo(job).stageIds
    tasks = spark._jsc.sc().statusStore().taskList(stage, 0, TASKS)
    told = []
    for number in range(tasks.size()):
        task = tasks.apply(number)
        metrics = task.taskMetrics().get().inputMetrics()
        told.append([task.executorId(), metrics.bytesRead()])
    return {"records": [list(record) for record in records], "tasks": told}


def train(spark, solver: str, net: str) -> dict:
    """A training whose events, checkpoints and model are on HDFS, and the model read back."""
    table = spark.read.parquet("digits.parquet")
    estimator = CaffeEstimator(
        solver=solver,
        net=net,
        featuresCol="image",
        numWorkers=2,
        shards=4,
        checkpointDir="hdfs:///checkpoints",
        checkpointInterval=10,
        events="hdfs:///told/run",
    )
    model = estimator.fit(table)
    model.save("hdfs:///saved")
    again = CaffeModel.load("hdfs:///saved")
    right = again.transform(table).filter("prediction = label").count()
    return {
        "sha256": model.result["sha256"],
        "again": again.result["sha256"],
        "events": model.events,
        "right": right,
    }


def main():
    """Does both in one session."""
    settings, solver, net = sys.argv[1:]
    builder = session_builder()
    for key, value in json.loads(settings).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    answer = read(spark)
    answer |= train(spark, pathlib.Path(solver).read_text(), pathlib.Path(net).read_text())
    spark.stop()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
