# SPDX-License-Identifier: Apache-2.0
"""What the benches on Spark share: a session of two executors and images of noise."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NET = ROOT / "examples" / "quickstart" / "lenet_train_test.prototxt"
sys.path.insert(0, str(ROOT / "python"))


def session(conf, master="local-cluster[2,1,2048]"):
    """Two executors of one core each; `conf`: more of Spark's settings, KEY=VALUE."""
    from cafetiere.spark import session_builder

    builder = session_builder().master(master)
    fixed = ["spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1"]
    for setting in [*fixed, "spark.ui.enabled=false", *conf]:
        builder = builder.config(*setting.split("=", 1))
    return builder.getOrCreate()


def images(spark, rows, size=784):
    """`rows` images of noise of so many bytes with labels, made by Spark itself."""
    hashes = spark.range(rows).selectExpr(
        "format_string('%08d', id) as id",
        f"unhex(repeat(sha2(cast(id as string), 256), {-(-size // 32)})) as bytes",
        "cast(id % 10 as int) as label",
    )
    return hashes.selectExpr(f"substring(bytes, 1, {size}) as image", "label", "id")
