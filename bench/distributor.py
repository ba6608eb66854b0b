# SPDX-License-Identifier: Apache-2.0
"""MNIST to 99 % on two executors of one core: fit() and TorchDistributor with gloo, in turns.

    bench/setup-peers
    PYTHONPATH=$PWD/build/peers/lib/python3.11/site-packages .venv/bin/python \\
        bench/distributor.py MNIST [--rounds 3] [--epochs 3]

MNIST: a folder with the four IDX files, gzipped. Both train Caffe's LeNet from the same Parquet
files with Adam, the same rates and 64 rows a step, each as its users would write it: our code is
between the marked lines of ours(), theirs is torch_train(). The first round of a session also
starts what the executors need. Prints a line of JSON for each fit; times do not include tests.
"""

import argparse
import gzip
import inspect
import json
import os
import pathlib
import sys
import tempfile
import time

import numpy as np
from spark_tables import NET, session

FILES, RATE, RANK_BATCH = 8, 0.001, 32  # of a rank; that of the net's file
NAMES = {"train": "train", "test": "t10k"}


def arrays(folder, part):
    """Images of a byte a pixel, a row each, and their labels."""
    with gzip.open(folder / f"{NAMES[part]}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(folder / f"{NAMES[part]}-labels-idx1-ubyte.gz") as file:
        return images, np.frombuffer(file.read(), np.uint8, offset=8)


def write(folder, out):
    """Both parts as Parquet: files of equal size."""
    import pyarrow
    import pyarrow.parquet

    for part in NAMES:
        images, labels = arrays(folder, part)
        (out / part).mkdir()
        for number in range(FILES):
            cells = {
                "image": [image.tobytes() for image in images[number::FILES]],
                "label": labels[number::FILES].astype(np.int32),
            }
            path = out / part / f"{number}.parquet"
            pyarrow.parquet.write_table(pyarrow.table(cells), path)


def ours(spark, data, epochs):
    """Seconds of a fit, and the share of test images that it classifies correctly."""
    from cafetiere.spark import CaffeEstimator

    net = NET.read_text()
    begun = time.perf_counter()
    # --- what a user writes
    solver = f'type: "Adam" base_lr: {RATE} lr_policy: "cosine" momentum: 0.9 random_seed: 1'
    estimator = CaffeEstimator(
        solver=solver, net=net, featuresCol="image", epochs=epochs, numWorkers=2
    )
    model = estimator.fit(spark.read.parquet(f"{data}/train"))
    # ---
    seconds = time.perf_counter() - begun
    scored = model.transform(spark.read.parquet(f"{data}/test"))
    return seconds, scored.filter("prediction = label").count() / scored.count()


def torch_train(data, epochs, rate, batch):
    """What each process of the peer does; the first one returns the weights."""
    import math
    import os
    import pathlib

    import numpy
    import pyarrow.parquet
    import torch
    import torch.distributed
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    torch.manual_seed(1)
    torch.distributed.init_process_group("gloo")
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    files = sorted(pathlib.Path(data, "train").glob("*.parquet"))[rank::size]
    table = pyarrow.parquet.read_table(files)
    pixels = numpy.frombuffer(b"".join(table["image"].to_pylist()), numpy.uint8)
    images = torch.from_numpy(pixels.reshape(-1, 1, 28, 28).astype(numpy.float32) / 256)
    labels = torch.from_numpy(table["label"].to_numpy().astype(numpy.int64))
    images = images.to(memory_format=torch.channels_last)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 20, 5), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(20, 50, 5), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(800, 500), torch.nn.ReLU(), torch.nn.Linear(500, 10),
    ).to(memory_format=torch.channels_last)  # fmt: skip
    parallel = DistributedDataParallel(net)
    adam = torch.optim.Adam(net.parameters(), lr=rate)
    steps = epochs * math.ceil(len(labels) / batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    for _ in range(epochs):
        for rows in torch.randperm(len(labels)).split(batch):
            adam.zero_grad()
            loss = torch.nn.functional.cross_entropy(parallel(images[rows]), labels[rows])
            loss.backward()
            adam.step()
            schedule.step()
    torch.distributed.destroy_process_group()
    return [value.numpy() for value in net.state_dict().values()] if rank == 0 else None


def theirs(spark, data, epochs):
    """The same for TorchDistributor."""
    import torch
    from pyspark.ml.torch.distributor import TorchDistributor

    begun = time.perf_counter()
    distributor = TorchDistributor(num_processes=2, local_mode=False, use_gpu=False)
    weights = distributor.run(torch_train, str(data), epochs, RATE, RANK_BATCH)
    seconds = time.perf_counter() - begun
    c1, b1, c2, b2, w3, b3, w4, b4 = map(torch.from_numpy, weights)
    rows = spark.read.parquet(f"{data}/test").toPandas()
    pixels = np.frombuffer(b"".join(rows["image"]), np.uint8).reshape(-1, 1, 28, 28)
    images, labels = (
        torch.from_numpy(pixels / np.float32(256)),
        torch.from_numpy(rows["label"].values),
    )
    net = torch.nn.functional
    out = net.max_pool2d(net.conv2d(images, c1, b1), 2)
    out = net.max_pool2d(net.conv2d(out, c2, b2), 2).flatten(1)
    out = net.linear(torch.relu(net.linear(out, w3, b3)), w4, b4)
    return seconds, float((out.argmax(1) == labels).float().mean())


def lines(function, first="", last=""):
    """How many lines of code a function has, in all or between two of its lines."""
    text = inspect.getsource(function).splitlines()
    begin = next((i for i, line in enumerate(text) if first and first in line), 1)
    end = next((i for i, line in enumerate(text) if last and line.strip() == last), len(text))
    body = [line.strip() for line in text[begin + 1 : end]]
    return sum(bool(line) and not line.startswith(("#", '"""')) for line in body)


def main():
    """Takes turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mnist", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder)
        write(args.mnist, data)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        spark = session(["spark.driver.memory=2g"], master="local-cluster[2,1,2048]")
        spark.sparkContext.setLogLevel("ERROR")
        for number in range(args.rounds):
            for run in (ours, theirs):
                seconds, right = run(spark, data, args.epochs)
                line = {"round": number, "by": run.__name__, "seconds": round(seconds, 1)}
                line.update(accuracy=round(right, 4), load=round(os.getloadavg()[0], 1))
                print(json.dumps(line), flush=True)
        spark.stop()
    mine = lines(ours, "what a user writes", "# ---")
    print(json.dumps({"lines": {"ours": mine, "theirs": lines(torch_train) + 2}}))


if __name__ == "__main__":
    main()
