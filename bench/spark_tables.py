# SPDX-License-Identifier: Apache-2.0
"""What the benches on Spark share: a session of two executors and images of noise."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NET = ROOT / "examples" / "quickstart" / "lenet_train_test.prototxt"
sys.path.insert(0, str(ROOT / "python"))


def session(conf):
    """Two executors of one core each; `conf`: more of Spark's settings, KEY=VALUE."""
    from cafetiere.spark import session_builder

    builder = session_builder().master("local-cluster[2,1,2048]")
    fixed = ["spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1"]
    for setting in [*fixed, "spark.ui.enabled=false", *conf]:
        builder = builder.config(*setting.split("=", 1))
    return builder.getOrCreate()


def images(spark, rows):
    """`rows` images of noise of 28 x 28 with labels, made by Spark itself."""
    hashes = spark.range(rows).selectExpr(
        "unhex(repeat(sha2(cast(id as string), 256), 25)) as bytes", "cast(id % 10 as int) as label"
    )
    return hashes.selectExpr("substring(bytes, 1, 784) as image", "label")
