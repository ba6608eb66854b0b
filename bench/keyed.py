# SPDX-License-Identifier: Apache-2.0
"""One net per key: groupCol and applyInPandas with scikit-learn's MLPClassifier, in turns.

pip install --target build/sklearn scikit-learn==1.9.1
.venv/bin/python bench/keyed.py [--help]

Both have the same table, layers, batch, epochs, solver and rate, on the same cores and from the
same cached rows. Seconds are wall time. The peer has fewer keys, so seconds a key are compared.
"""

import argparse
import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"  # of each Python worker: Spark has one on each core
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT / "build" / "sklearn"), os.environ.get("PYTHONPATH", "")]
)

FEATURES, TRAIN_ROWS, TEST_ROWS = 10, 100, 50
LAYERS, BATCH, EPOCHS, RATE = [64, 32], 32, 20, 0.003
NAMES = [f"x{i}" for i in range(FEATURES)]


def table(spark, keys):
    """Numbers, and a class that follows from them by the key's weights; 5 % of them are wrong."""
    rows = spark.range(keys * (TRAIN_ROWS + TEST_ROWS))
    rows = rows.selectExpr(
        "id",
        f"concat('key ', id % {keys}) as key",
        f"id div {keys} >= {TRAIN_ROWS} as held",
        *(f"randn({i}) as x{i}" for i in range(FEATURES)),
    )
    weights = " + ".join(f"x{i} * (hash(key, {i}) % 1000)" for i in range(FEATURES))
    return rows.selectExpr("*", f"cast(({weights} > 0) <> (hash(id) % 20 = 0) as int) as label")


def ours(rows, keys):
    """Seconds to fit, the accuracy on held-out rows, and seconds to score them."""
    from cafetiere.spark.ml import CaffeClassifier

    estimator = CaffeClassifier(
        groupCol="key", featuresCols=NAMES, labelCol="label", idCol="id", layers=LAYERS,
        batchSize=BATCH, maxEpochs=EPOCHS, optimizer="Adam", baseLr=RATE, lrSchedule="fixed",
    )  # fmt: skip
    train, test = rows.filter("not held"), rows.filter("held")
    begun = time.perf_counter()
    model = estimator.fit(train)
    fitted = time.perf_counter()
    assert model.nets.filter("error is null").count() == keys
    begun_to_score = time.perf_counter()
    right = model.transform(test).filter("prediction = label").count()
    scored = time.perf_counter()
    model.nets.unpersist()
    return fitted - begun, right / test.count(), scored - begun_to_score


def fit_one(rows):
    """What a user writes for one key."""
    import warnings

    import pandas
    from sklearn.neural_network import MLPClassifier

    warnings.filterwarnings("ignore")  # that it has not converged
    train, test = rows[~rows.held], rows[rows.held]
    net = MLPClassifier(
        LAYERS, solver="adam", batch_size=BATCH, max_iter=EPOCHS, learning_rate_init=RATE, alpha=0,
        tol=0, n_iter_no_change=EPOCHS + 1, random_state=1,
    ).fit(train[NAMES], train.label)  # fmt: skip
    right = int((net.predict(test[NAMES]) == test.label).sum())
    return pandas.DataFrame({"key": [rows.key.iloc[0]], "right": [right], "rows": [len(test)]})


def peer(rows):
    """The same for the peer; its accuracy is counted during the fit."""
    begun = time.perf_counter()
    out = rows.groupBy("key").applyInPandas(fit_one, "key string, right long, rows long")
    right, count = out.selectExpr("sum(right)", "sum(rows)").first()
    return time.perf_counter() - begun, right / count


def main():
    """Takes turns, and prints a line a round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--peer-keys", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    args = parser.parse_args()
    from spark_tables import session

    # Neither loses cores to an empty plan: as many partitions as cores, and again for unequal ones.
    spark = session(
        ["spark.sql.shuffle.partitions=8", "spark.driver.memory=4g",
         "spark.ui.showConsoleProgress=false",
         "spark.sql.adaptive.coalescePartitions.enabled=false"], args.master
    )  # fmt: skip
    spark.sparkContext.setLogLevel("ERROR")
    rows = table(spark, args.keys).cache()
    few = table(spark, args.peer_keys).cache()
    print(rows.count(), few.count(), "rows", flush=True)
    print("accuracy on the peer's keys:", ours(few, args.peer_keys)[1], flush=True)
    for round_ in range(args.rounds):
        load = os.getloadavg()[0]
        seconds, accuracy, scoring = ours(rows, args.keys)
        peer_seconds, peer_accuracy = peer(few)
        line = {
            "round": round_, "load": [round(load, 1), round(os.getloadavg()[0], 1)],
            "keys": args.keys, "seconds": round(seconds, 2), "accuracy": round(accuracy, 4),
            "ms_a_key": round(1000 * seconds / args.keys, 3), "scoring_seconds": round(scoring, 2),
            "peer_keys": args.peer_keys, "peer_seconds": round(peer_seconds, 2),
            "peer_accuracy": round(peer_accuracy, 4),
            "peer_ms_a_key": round(1000 * peer_seconds / args.peer_keys, 2),
        }  # fmt: skip
        line["times"] = round(line["peer_ms_a_key"] / line["ms_a_key"], 1)
        print(json.dumps(line), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
