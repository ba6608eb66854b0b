# SPDX-License-Identifier: Apache-2.0
"""What groupCol takes of an executor's memory: by the number of keys, and by the largest of them.

.venv/bin/python bench/keyed_memory.py [--columns 50]

One executor of one core, whose heap is touched from the start, so that only native memory makes its
resident memory rise. Prints, for tables in turn, the rise beside the bytes of the largest key.
"""

import argparse
import json

import spark_tables
from executor_memory import rise_of

ROUNDS = 3


def table(spark, keys, rows, columns):
    """`keys` keys of `rows` rows of numbers, which Spark generates."""
    numbers = [f"randn({i}) as x{i}" for i in range(columns)]
    made = spark.range(keys * rows).selectExpr("id", f"id % {keys} as key", *numbers)
    return made.selectExpr("*", "cast(x0 + x1 > 0 as int) as label")


def main():
    """Fits each table some times, and prints a line for each fit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, default=50)
    args = parser.parse_args()
    heap = "spark.executor.extraJavaOptions=-Xms1g -XX:+AlwaysPreTouch"
    spark = spark_tables.session([heap], "local-cluster[1,1,1024]")
    spark.sparkContext.setLogLevel("ERROR")
    from cafetiere.spark.ml import CaffeClassifier

    names = [f"x{i}" for i in range(args.columns)]
    learner = CaffeClassifier(
        groupCol="key", featuresCols=names, labelCol="label", idCol="id", layers=[16], maxEpochs=1
    )
    learner.fit(table(spark, 8, 100, args.columns)).nets.unpersist()  # loads the engine
    for _ in range(ROUNDS):
        for keys, rows in ((200, 100), (2_000, 100), (20, 1_000), (4, 50_000)):
            model, rise = rise_of(lambda: learner.fit(table(spark, keys, rows, args.columns)))  # noqa: B023
            model.nets.unpersist()
            line = {"keys": keys, "rows_a_key": rows, "rise_mib": round(rise / 2**20, 1)}
            line["largest_key_mib"] = round(rows * args.columns * 8 / 2**20, 1)
            print(json.dumps(line), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
