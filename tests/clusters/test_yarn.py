# SPDX-License-Identifier: Apache-2.0
"""CaffeOnSpark's command line on YARN and HDFS: the weights are those of this machine alone."""

import json
import os
import re
import signal
import subprocess
import threading
import time
import zipfile

import manifests
import pytest
import submits
from conftest import OldYarn
from minicluster import wait_for

GOLDEN = submits.ROOT / "jvm/spark/src/test/resources/preflight"
RANKS = 4
NOT_WAITED = 30  # preflight waits a minute for executors that may come


def model_on_hdfs(yarn, folder, tmp_path):
    return yarn.cluster.get(f"{folder}/lenet.caffemodel", tmp_path / "from-hdfs.caffemodel")


def test_cluster_mode_takes_files_along_and_writes_to_hdfs(yarn, trained, tmp_path):
    """With the words of the example's workflow for Oozie."""
    work, expected = trained()
    values = {"executors": RANKS, "shards": submits.SHARDS, "table": "digits.parquet"}
    flags = manifests.spark_arguments("train", {**values, "output": "hdfs:///cluster"})
    flags += ["-events", "hdfs:///cluster/told"]
    yarn.submit(work, "cluster", flags, ["--files", work.files])
    assert model_on_hdfs(yarn, "/cluster", tmp_path) == expected
    files = yarn.cluster.files("/cluster")
    for step in (20, 40):
        assert files[f"/cluster/lenet_iter_{step}.caffemodel"] == len(expected)
        assert f"/cluster/lenet_iter_{step}.solverstate" in files
    events = yarn.cluster.get("/cluster/told.jsonl", tmp_path / "events").decode().splitlines()
    assert any(json.loads(event).get("step") == 40 for event in events)
    assert not yarn.cluster.files("/cluster/checkpoints"), "they go with the run"


def test_a_full_queue_is_told_and_not_waited_for(yarn, trained):
    """As many executors are wanted as -clusterSize says, and not as Spark's settings do."""
    work, _ = trained()
    command = yarn.command(
        "client",
        work.flags("hdfs:///full/lenet.caffemodel", RANKS - 1),
        ["--queue", "small"],
        {"spark.scheduler.maxRegisteredResourcesWaitingTime": "3s"},
    )
    process = start(command, yarn.environment, work.folder)
    ready, answer = None, ""
    for line in process.stdout:
        if "SchedulerBackend is ready" in line:
            ready = time.monotonic()
        if line.startswith("cafetiere: "):
            answer = line.removeprefix("cafetiere: ").strip()
            seconds = time.monotonic() - ready
    assert process.wait() == 2
    assert re.fullmatch(golden("yarn-queue-full"), answer), answer
    assert answer.startswith(f"the training needs {RANKS - 1} tasks at once")
    assert "YARN has given 1 executors, and queue small has no room" in answer
    print(f"a full queue was told {seconds:.1f} s after Spark's own start")
    assert seconds < NOT_WAITED


@pytest.mark.long
@pytest.mark.parametrize(
    ("queue", "memory", "told"),
    [
        ("small", "1g", "YARN has given 0 executors, and queue small has no room"),
        ("default", "3g", "YARN has given 1 executors, and the cluster has no room"),
    ],
)
def test_no_executor_and_a_full_cluster_are_told_too(yarn, trained, queue, memory, told):
    work, _ = trained()
    flags = work.flags("hdfs:///full/lenet.caffemodel", RANKS)
    settings = {
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "3s",
        "spark.executor.memory": memory,
    }
    command = yarn.command("client", flags, ["--queue", queue], settings)
    done = submits.run(command, yarn.environment, work.folder)
    assert done.returncode == 2, done.stdout[-5_000:]
    assert told in done.stdout, done.stdout[-2_000:]


@pytest.mark.long
def test_client_mode_with_the_library_in_an_archive(yarn, trained, tmp_path):
    """On two of its four executors, as -clusterSize says: the weights are the same."""
    work, expected = trained()
    jar, archive = without_library(tmp_path)
    options = "-Dcafetiere.native.path={} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {
        "spark.executor.extraJavaOptions": options.format("./native"),
        "spark.driver.extraJavaOptions": options.format(tmp_path / "native"),
    }
    flags = work.flags("hdfs:///client/lenet.caffemodel", RANKS // 2)
    command = yarn.command("client", flags, ["--archives", f"{archive}#native"], settings)
    command[command.index(str(submits.standalone.JAR))] = str(jar)
    done = submits.run(command, yarn.environment, work.folder)
    assert done.returncode == 0, done.stdout[-10_000:]
    assert f'"ranks":{RANKS // 2},' in done.stdout, done.stdout[-10_000:]
    assert model_on_hdfs(yarn, "/client", tmp_path) == expected


@pytest.mark.long
def test_a_killed_executor_changes_no_bit(yarn, trained, tmp_path):
    work, expected = trained(steps=400)
    flags = [*work.flags("hdfs:///killed/lenet.caffemodel", RANKS), "-checkpointInterval", "10"]
    process = start(yarn.command("client", flags), yarn.environment, work.folder)
    output = []
    reader = threading.Thread(target=lambda: output.extend(process.stdout))
    reader.start()

    def has_checkpoint():
        assert process.poll() is None, "".join(output)
        return any("/step-" in path for path in yarn.cluster.files(f"{yarn.home}/.cafetiere"))

    wait_for("the first checkpoint", has_checkpoint)
    os.kill(yarn.cluster.executors()[0], signal.SIGKILL)
    assert process.wait(300) == 0, "".join(output)
    reader.join()
    assert any("was interrupted and goes on from step" in line for line in output), "".join(output)
    assert model_on_hdfs(yarn, "/killed", tmp_path) == expected


@pytest.mark.long
def test_spark_35_in_cluster_mode(yarn, trained, tmp_path):
    work, expected = trained()
    old = OldYarn(yarn.cluster)
    flags = work.flags("hdfs:///old/lenet.caffemodel", RANKS)
    old.submit(work, "cluster", flags, ["--files", work.files])
    assert model_on_hdfs(old, "/old", tmp_path) == expected


@pytest.mark.long
def test_solver_net_weights_and_mean_file_from_hdfs(yarn, trained, tmp_path):
    work, expected = trained()
    mean = tmp_path / "mean.binaryproto"
    write_mean(work, mean)
    yarn.cluster.put(mean, "/job/mean.binaryproto")
    net = (work.folder / "lenet.prototxt").read_text()
    scale = "transform_param { scale: 0.00390625"
    assert scale in net
    net = net.replace(scale, f'{scale} mean_file: "hdfs:///job/mean.binaryproto"')
    (tmp_path / "lenet.prototxt").write_text(net)
    yarn.cluster.put(tmp_path / "lenet.prototxt", "/job/lenet.prototxt")
    yarn.cluster.put(work.folder / "solver.prototxt", "/job/solver.prototxt")
    (tmp_path / "first.caffemodel").write_bytes(expected)
    yarn.cluster.put(tmp_path / "first.caffemodel", "/job/first.caffemodel")

    flags = work.flags("hdfs:///tuned/lenet.caffemodel", RANKS)
    flags[flags.index("solver.prototxt")] = "hdfs:///job/solver.prototxt"
    yarn.submit(work, "cluster", [*flags, "-weights", "hdfs:///job/first.caffemodel"])

    local = submits.Work(tmp_path / "local")
    (local.folder / "lenet.prototxt").write_text(net.replace("hdfs:///job", str(tmp_path)))
    model = tmp_path / "local.caffemodel"
    flags = [*local.flags(model.as_uri(), 2), "-weights", str(tmp_path / "first.caffemodel")]
    command = submits.command(["--master", "local[2]"], {}, flags)
    done = submits.run(command, dict(os.environ), local.folder)
    assert done.returncode == 0, done.stdout[-5_000:]
    tuned = weights(model_on_hdfs(yarn, "/tuned", tmp_path))
    assert tuned == weights(model.read_bytes()) != weights(expected)


@pytest.mark.long
def test_executors_with_gpus_on_nodes_with_a_label(yarn, trained, tmp_path):
    """The last one: the label stays."""
    yarn.cluster.ask("label")
    work, expected = trained()
    script = tmp_path / "gpus"
    script.write_text("""#!/bin/sh\necho '{"name": "gpu", "addresses": ["0", "1"]}'\n""")
    script.chmod(0o755)
    settings = {
        "spark.executor.instances": "2",
        "spark.yarn.executor.nodeLabelExpression": "gpu",
        "spark.executor.resource.gpu.amount": "1",
        "spark.executor.resource.gpu.discoveryScript": str(script),
        "spark.task.resource.gpu.amount": "1",
    }
    flags = work.flags("hdfs:///labelled/lenet.caffemodel", 2)
    process = start(yarn.command("client", flags, settings=settings), yarn.environment, work.folder)
    output = []
    reader = threading.Thread(target=lambda: output.extend(process.stdout))
    reader.start()

    def all_containers():
        assert process.poll() is None, "".join(output)
        found = [entry.split(" ") for entry in yarn.cluster.ask("containers")]
        return found if len(found) == 3 else None

    containers = wait_for("two executors", all_containers)
    assert process.wait(300) == 0, "".join(output)
    reader.join()
    master, *executors = sorted(containers, key=lambda words: int(words[1]))
    assert master[3] == "0" and [words[3] for words in executors] == ["1", "1"]
    assert {words[2] for words in executors} != {master[2]}
    assert len({words[2] for words in executors}) == 1
    assert model_on_hdfs(yarn, "/labelled", tmp_path) == expected


def start(command, environment, folder):
    home = environment["SPARK_HOME"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    words = [f"{home}/bin/{command[0]}", *command[1:]]
    return subprocess.Popen(words, env=environment, cwd=folder, **pipes)


def golden(name):
    text = (GOLDEN / f"{name}.txt").read_text().strip()
    return "[^\n]+?".join(re.escape(part) for part in re.split("<[a-z]+>", text))


def without_library(folder):
    """The product's jar without the native library, and an archive with that."""
    jar, archive = folder / "bare.jar", folder / "native.zip"
    (folder / "native").mkdir()
    with (
        zipfile.ZipFile(submits.standalone.JAR) as whole,
        zipfile.ZipFile(jar, "w") as bare,
        zipfile.ZipFile(archive, "w") as native,
    ):
        for entry in whole.infolist():
            if entry.filename.endswith("libcafetiere.so"):
                native.writestr("libcafetiere.so", whole.read(entry))
                (folder / "native" / "libcafetiere.so").write_bytes(whole.read(entry))
            elif not entry.filename.startswith("native/"):
                bare.writestr(entry, whole.read(entry))
    return jar, archive


def weights(model):
    """Those of a model, without its net, which names the mean file's path."""
    from cafetiere.proto import caffe_pb2

    net = caffe_pb2.NetParameter.FromString(model)
    return [(layer.name, [blob.SerializeToString() for blob in layer.blobs]) for layer in net.layer]


def write_mean(work, path):
    """A mean image that is not the same everywhere."""
    import numpy as np

    from cafetiere.proto import caffe_pb2

    blob = caffe_pb2.BlobProto(num=1, channels=1, height=28, width=28)
    blob.data.extend(np.arange(28 * 28, dtype=np.float32) / 8)
    path.write_bytes(blob.SerializeToString())
