# SPDX-License-Identifier: Apache-2.0
"""LMDB through Spark, beside liblmdb itself."""

import ctypes
import ctypes.util
import pathlib
import subprocess

import pytest
from program import PROGRAM
from test_readme import write_idx

READ_ONLY, NO_LOCK, FIRST, NEXT = 0x20000, 0x400000, 0, 8


class Val(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_void_p)]

    def bytes(self) -> bytes:
        return ctypes.string_at(self.data, self.size)


def dump(folder: pathlib.Path) -> list[tuple[bytes, bytes]]:
    """All records, in the order in which liblmdb gives them."""
    lmdb = ctypes.CDLL(ctypes.util.find_library("lmdb"))

    def call(name, *arguments):
        code = getattr(lmdb, f"mdb_{name}")(*arguments)
        assert code == 0, (name, code)

    env, txn, cursor = (ctypes.c_void_p() for _ in range(3))
    dbi, key, value = ctypes.c_uint(), Val(), Val()
    call("env_create", ctypes.byref(env))
    call("env_open", env, str(folder).encode(), READ_ONLY | NO_LOCK, 0o644)
    call("txn_begin", env, None, READ_ONLY, ctypes.byref(txn))
    call("dbi_open", txn, None, 0, ctypes.byref(dbi))
    call("cursor_open", txn, dbi, ctypes.byref(cursor))
    records = []
    operation = FIRST
    while lmdb.mdb_cursor_get(cursor, ctypes.byref(key), ctypes.byref(value), operation) == 0:
        records.append((key.bytes(), value.bytes()))
        operation = NEXT
    lmdb.mdb_cursor_close(cursor)
    lmdb.mdb_txn_abort(txn)
    lmdb.mdb_env_close(env)
    return records


pytestmark = pytest.mark.skipif(not ctypes.util.find_library("lmdb"), reason="needs liblmdb.so")


def test_spark_reads_what_liblmdb_does(spark, work):
    write_idx(work, "train", 5_000)
    subprocess.run(
        [PROGRAM, "convert_mnist", "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "lmdb"],
        check=True,
        capture_output=True,
    )
    reader = spark.read.format("lmdb").option("partitions", 4)
    rows = reader.option("raw", True).load(str(work / "lmdb"))
    assert rows.rdd.getNumPartitions() == 4
    assert [(bytes(r.key), bytes(r.value)) for r in rows.collect()] == dump(work / "lmdb")
    labels = reader.option("raw", False).load(str(work / "lmdb")).groupBy("label").count()
    assert {row.label: row["count"] for row in labels.collect()} == dict.fromkeys(range(10), 500)


def test_liblmdb_reads_what_spark_writes(spark, work):
    table = spark.range(3_000).selectExpr(
        "cast(format_string('%06d', 2999 - id) as binary) key",
        "cast(repeat('v', cast(id % 5000 as int)) as binary) value",
    )
    table.coalesce(1).write.format("lmdb").save(str(work / "one"))
    expected = [(b"%06d" % i, b"v" * (2999 - i)) for i in range(3_000)]
    assert dump(work / "one") == expected
    table.repartition(3).write.format("lmdb").save(str(work / "parts"))
    parts = [dump(folder) for folder in sorted((work / "parts").glob("part-*"))]
    assert len(parts) == 3
    assert sorted(record for part in parts for record in part) == expected
