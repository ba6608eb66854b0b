# SPDX-License-Identifier: Apache-2.0
"""A program of a thin client whose first fit is interrupted, as the stop button of a notebook does.

Prints what became of it as JSON.
"""

import json
import signal
import time

from connect_nets import net
from pyspark.sql import SparkSession

from cafetiere.spark import RunReport

SECONDS = 60


def main():
    """Fits without end, then to the end."""
    # Python leaves it ignored in what a shell has started in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    spark = SparkSession.builder.getOrCreate()
    endless, rows = net(spark, maxIter=10**9)
    seen = {}
    try:
        endless.fit(rows)
    except KeyboardInterrupt:
        seen["interrupted"] = True
    began = time.monotonic()
    seen["run"] = ended_run(spark, endless.uid)
    following, rows = net(spark)
    model = following.fit(rows)  # needs both executors
    seen["steps"] = model.summary.steps
    seen["seconds"] = time.monotonic() - began
    print(json.dumps(seen), flush=True)
    raise RuntimeError("a program that fails ends, though its frame still has a model")


def ended_run(spark, owner: str) -> dict:
    """What is told of the run once it has ended."""
    end = time.monotonic() + SECONDS
    while True:
        (row,) = RunReport(owner=owner).transform(spark.range(1)).collect()
        if row.state != "running" or time.monotonic() > end:
            return {name: row[name] for name in ("state", "step", "steps", "failure")}
        time.sleep(0.1)


if __name__ == "__main__":
    main()
