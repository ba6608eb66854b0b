# SPDX-License-Identifier: Apache-2.0
"""A program of a thin client: fits a net on each of the engines; prints their figures as JSON."""

import json

from connect_nets import engine_figures
from pyspark.sql import SparkSession

if __name__ == "__main__":
    print(json.dumps(engine_figures(SparkSession.builder.getOrCreate())), flush=True)
