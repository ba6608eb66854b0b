#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes of examples/cifar10 in PyTorch, for the comparison of accuracy in docs/accuracy.md.

  bench/torch_cifar.py TRAIN_LIST TRAIN_IMAGES TEST_LIST TEST_IMAGES [--net quick|full]

The lists are the train.txt and test.txt that examples/cifar10/make_databases leaves in out/cifar10;
their paths are relative to the folders. Same batches of 100, mean image, fillers, rates, momentum
and decay. Prints a JSON line for each test. Needs the peers of bench/setup-peers.
"""

import argparse
import concurrent.futures
import json
import pathlib
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional
from torch_nets import cifar10_quick, max_pool

BATCH = 100
# Each stage: its last step and its rate.
STAGES = {
    "quick": [(4000, 1e-3), (5000, 1e-4)],
    "full": [(60000, 1e-3), (65000, 1e-4), (70000, 1e-5)],
}
# The deviations of the weights, layer by layer.
DEVIATIONS = {"quick": [1e-4, 0.01, 0.01, 0.1, 0.1], "full": [1e-4, 0.01, 0.01, 0.01]}
# What multiplies rate and decay of a layer's weights and of its bias, if not (1, 1), (2, 1).
FACTORS = {"full": {2: [(1, 1), (1, 1)], 3: [(1, 250), (2, 0)]}}


class Norm(nn.Module):
    """Normalisation over 3 x 3 neighbours of the same channel."""

    def forward(self, x):
        """x * (1 + 5e-5 * mean of squares)^-0.75."""
        return x * (1 + 5e-5 * functional.avg_pool2d(x * x, 3, 1, 1)) ** -0.75


def cifar10_full():
    """Krizhevsky's larger net for CIFAR-10."""
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 5, padding=2), max_pool(3, 2), nn.ReLU(), Norm()),
        *(nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True), Norm()),
        *(nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True)),
        *(nn.Flatten(), nn.Linear(1024, 10)),
    )


def load(list_file, folder):
    """Images (N, 3, 32, 32) and labels of a list of "path label" lines, in its order."""
    lines = [line.rsplit(" ", 1) for line in pathlib.Path(list_file).read_text().splitlines()]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        images = list(pool.map(lambda line: np.asarray(Image.open(folder / line[0])), lines))
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float()
    return pixels, torch.tensor([int(label) for _, label in lines])


def fill(net, name):
    """Gaussian weights, zero biases; returns SGD with the factors of each parameter."""
    layers = [m for m in net.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    groups = []
    for i, (layer, deviation) in enumerate(zip(layers, DEVIATIONS[name], strict=True)):
        nn.init.normal_(layer.weight, std=deviation)
        nn.init.zeros_(layer.bias)
        factors = FACTORS.get(name, {}).get(i, [(1, 1), (2, 1)])
        for parameter, (rate, decay) in zip((layer.weight, layer.bias), factors, strict=True):
            groups.append({"params": [parameter], "factor": rate, "weight_decay": 0.004 * decay})
    return torch.optim.SGD(groups, lr=STAGES[name][0][1], momentum=0.9)


def accuracy(net, images, labels):
    """The share of images whose label has the best score."""
    with torch.no_grad():
        scores = torch.cat([net(part) for part in images.split(BATCH)])
    return (scores.argmax(1) == labels).float().mean().item()


def main():
    """Trains a net and prints its accuracy along the way."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for part in ("train", "test"):
        parser.add_argument(f"{part}_list", type=pathlib.Path)
        parser.add_argument(f"{part}_images", type=pathlib.Path)
    parser.add_argument("--net", choices=STAGES, default="quick")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--test_interval", type=int, default=500)
    parser.add_argument(
        "--ends", type=int, nargs="+", help="last step of each stage, to shorten them"
    )
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(given.seed)

    images, labels = load(given.train_list, given.train_images)
    test_images, test_labels = load(given.test_list, given.test_images)
    mean = images.mean(0)
    order = torch.randperm(len(images))  # once, as in the databases
    images, labels = images[order] - mean, labels[order]
    test_images -= mean

    net = {"quick": cifar10_quick, "full": cifar10_full}[given.net]()
    sgd = fill(net, given.net)
    net.to(memory_format=torch.channels_last)  # the faster one of PyTorch's layouts here
    ends = given.ends or [end for end, _ in STAGES[given.net]]
    stages = list(zip(ends, [rate for _, rate in STAGES[given.net]], strict=True))
    begun = time.perf_counter()
    for step in range(stages[-1][0]):
        rate = next(rate for end, rate in stages if step < end)
        for group in sgd.param_groups:
            group["lr"] = rate * group["factor"]
        rows = torch.arange(step * BATCH, (step + 1) * BATCH) % len(images)
        sgd.zero_grad(set_to_none=True)
        functional.cross_entropy(net(images[rows]), labels[rows]).backward()
        sgd.step()
        if (step + 1) % given.test_interval == 0:
            figures = {
                "step": step + 1,
                "accuracy": round(accuracy(net, test_images, test_labels), 4),
                "seconds": round(time.perf_counter() - begun, 1),
            }
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
