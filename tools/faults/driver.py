# SPDX-License-Identifier: Apache-2.0
"""The driver of tools/chaos: fits what stdin says, a JSON object a line; answers on stdout.

A line of its argument, JSON, holds the session's settings. The answer is the model's result with
its accuracy on the table, or {"error": ..} with what `fit` raised.
"""

import json
import os
import sys

from cafetiere.spark import CaffeEstimator, session_builder

SLOT_SECONDS = 60


def await_slots(spark, wanted):
    """Waits until so many tasks can run: an executor that was replaced takes a while to report."""
    jvm = spark._jvm
    slots = getattr(jvm.cafetiere.spark.cluster.ClusterSlots, "await")  # Python's keyword
    there = slots(spark._jsc.sc(), wanted, SLOT_SECONDS, jvm.java.util.concurrent.TimeUnit.SECONDS)
    if there < wanted:
        raise RuntimeError(f"{there} of {wanted} slots are there after {SLOT_SECONDS} s")


def fit(spark, fit):
    """Trains as told, once there are slots for all workers, and tries the model on the table."""
    await_slots(spark, fit["params"]["numWorkers"])
    table = spark.read.parquet(fit["table"])
    model = CaffeEstimator(**fit["params"]).fit(table)
    right = model.transform(table).filter("prediction = label").count()
    return {**model.result, "accuracy": right / table.count()}


def main():
    """Answers until stdin ends; then the session stops."""
    # Only the answers: Spark's scripts write to stdout, too.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    builder = session_builder()
    for key, value in json.loads(sys.argv[1]).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = fit(spark, json.loads(line))
        except Exception as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
