# SPDX-License-Identifier: Apache-2.0
"""Scores a stream to its end: stream_driver.py FOLDER, with `model` and `in`; writes `out`."""

import sys

from conftest import new_session

from cafetiere.spark.ml import CaffeClassificationModel


def main(folder):
    """A batch has a file for each core of one executor, so three drivers start sooner."""
    spark = new_session("local-cluster[1,2,1024]")
    schema = spark.read.parquet(f"{folder}/in").schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(f"{folder}/in")
    scored = CaffeClassificationModel.load(f"{folder}/model").transform(rows).writeStream
    scored = scored.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
    scored.start(f"{folder}/out", format="parquet").awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
