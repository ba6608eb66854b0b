#!/usr/bin/env python3
"""Training speed of PyTorch on the CPU for LeNet: images/s in its float32 modes.

A step is forward, loss, backward and SGD (momentum 0.9, weight decay 5e-4) on one resident batch.
Prints one JSON object: images per second of each mode, the median over blocks of ten steps.
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn


def lenet():
    """Caffe's LeNet."""
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        nn.MaxPool2d(2, 2, ceil_mode=True),
        nn.Conv2d(20, 50, 5),
        nn.MaxPool2d(2, 2, ceil_mode=True),
        nn.Flatten(),
        nn.Linear(800, 500),
        nn.ReLU(),
        nn.Linear(500, 10),
    )


def images_per_second(mode, batch, seconds):
    """Median images/s of one mode: eager or compile, _cl for channels-last."""
    torch.manual_seed(1)
    net, images = lenet(), torch.rand(batch, 1, 28, 28)
    labels = torch.randint(10, (batch,))
    if mode.endswith("_cl"):
        net, images = (
            net.to(memory_format=torch.channels_last),
            images.to(memory_format=torch.channels_last),
        )
    sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, fused=True)
    run = torch.compile(net) if mode.startswith("compile") else net

    def step():
        sgd.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(run(images), labels).backward()
        sgd.step()

    for _ in range(30):
        step()
    blocks, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter()
        for _ in range(10):
            step()
        blocks.append(10 * batch / (time.perf_counter() - begun))
    return statistics.median(blocks)


def main():
    """Times the modes asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--modes", default="eager,eager_cl,compile,compile_cl")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    figures = {m: images_per_second(m, args.batch, args.seconds) for m in args.modes.split(",")}
    print(json.dumps({"torch": torch.__version__, "images_per_s": figures}))


if __name__ == "__main__":
    main()
