# SPDX-License-Identifier: Apache-2.0
"""A large LMDB and a training from Python, on YARN, with all files on HDFS."""

import collections
import ctypes
import ctypes.util
import hashlib
import json
import pathlib
import random
import subprocess
import sys

import pytest
import submits
from test_lmdb import Val, dump

pytestmark = pytest.mark.long

RECORDS = 50_000
MEAN_BYTES = 4_000
CREATE = 0x40000
ROOM = 1 << 30


@pytest.mark.skipif(not ctypes.util.find_library("lmdb"), reason="needs liblmdb.so")
def test_a_large_database_and_a_training_from_python(yarn, trained, tmp_path):
    work, _ = trained()
    write_database(tmp_path / "big_lmdb")
    size = (tmp_path / "big_lmdb" / "data.mdb").stat().st_size
    assert size > 200e6
    yarn.cluster.put(tmp_path / "big_lmdb", "/big_lmdb")
    solver = (work.folder / "solver.prototxt").read_text().replace('net: "lenet.prototxt"', "")
    (tmp_path / "solver.prototxt").write_text(solver)
    answer = drive(yarn, tmp_path / "solver.prototxt", tmp_path)

    expected = [
        [key.decode(), hashlib.sha256(value).hexdigest()]
        for key, value in dump(tmp_path / "big_lmdb")
    ]
    assert answer["records"] == expected and len(expected) == RECORDS
    read, tasks = collections.Counter(), collections.Counter()
    for executor, count in answer["tasks"]:
        read[executor] += count
        tasks[executor] += 1
    print(f"of {size} bytes executors read {dict(read)} in {dict(tasks)} of 4 tasks")
    assert tasks.total() == 4 and len(tasks) == 2
    for executor, count in read.items():
        assert 0 < count <= 1.05 * size * tasks[executor] / 4

    assert answer["again"] == answer["sha256"]
    assert answer["right"] > 0.9 * submits.ROWS
    events = yarn.cluster.get("/told/run.jsonl", tmp_path / "events").decode()
    assert [json.loads(line) for line in events.splitlines()] == answer["events"]
    assert any("events.out.tfevents." in path for path in yarn.cluster.files("/told"))
    assert "/saved/data/model.caffemodel" in yarn.cluster.files("/saved")
    steps = sorted({path.split("/")[3] for path in yarn.cluster.files("/checkpoints")})
    assert steps[-1] == "step-000000000040"


def drive(yarn, solver, folder):
    command = yarn.command("client", [])
    confs = dict(command[i + 1].split("=", 1) for i, word in enumerate(command) if word == "--conf")
    confs |= {"spark.master": "yarn", "spark.executor.instances": "2"}
    program = pathlib.Path(__file__).with_name("hdfs_driver.py")
    words = [sys.executable, program, json.dumps(confs), solver, submits.LENET]
    environment = {**yarn.environment, "PYTHONPATH": str(submits.ROOT / "python")}
    with open(folder / "driver.log", "w") as log:
        done = subprocess.run(
            words, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=log, timeout=600
        )
    assert done.returncode == 0, (folder / "driver.log").read_text()[-8_000:]
    return json.loads(done.stdout.splitlines()[-1])


def write_database(folder):
    """Values of 1,000 to 7,000 bytes, by liblmdb, as Caffe writes them."""
    lmdb = ctypes.CDLL(ctypes.util.find_library("lmdb"))

    def call(name, *arguments):
        assert getattr(lmdb, f"mdb_{name}")(*arguments) == 0, name

    folder.mkdir()
    noise = random.Random(1)
    env, txn, dbi = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
    call("env_create", ctypes.byref(env))
    call("env_set_mapsize", env, ctypes.c_size_t(ROOM))
    call("env_open", env, str(folder).encode(), 0, 0o644)
    call("txn_begin", env, None, 0, ctypes.byref(txn))
    call("dbi_open", txn, None, CREATE, ctypes.byref(dbi))
    for number in range(RECORDS):
        key = b"%08d_digit" % number
        value = noise.randbytes(noise.randrange(1_000, 2 * MEAN_BYTES - 1_000))
        pair = [
            Val(len(text), ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p))
            for text in (key, value)
        ]
        call("put", txn, dbi, ctypes.byref(pair[0]), ctypes.byref(pair[1]), 0)
    call("txn_commit", txn)
    lmdb.mdb_env_close(env)
