#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training speed of PyTorch on the CPU: images/s of a net in its modes, in float32 or by autocast.

A step is forward, loss, backward and SGD (momentum 0.9, weight decay 5e-4) on one resident batch.
Prints one JSON object: images per second in each mode, the median over blocks of steps, and the
same per second of CPU time, which a busy machine disturbs least (useful with one thread). With
--steps N it runs that many steps of the first mode only and prints its peak memory.
"""

import argparse
import json
import statistics
import time

import torch
from torch.nn import functional
from torch_common import built_net, images_of, peak_mb


def loss_of(scores, labels):
    """Softmax loss; the auxiliary heads of GoogLeNet count 0.3."""
    if isinstance(scores, torch.Tensor):
        return functional.cross_entropy(scores, labels)
    main, *others = (functional.cross_entropy(s, labels) for s in scores)
    return main + 0.3 * sum(others)


def trainer(name, mode, batch, precision):
    """A function that runs some steps and returns their wall and CPU seconds; the batch size."""
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")
    net, run = built_net(name, mode)
    images, labels = images_of(name, mode, batch)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, fused=True)

    def steps(count):
        begun, cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            sgd.zero_grad(set_to_none=True)
            with autocast:
                loss = loss_of(run(images), labels)
            loss.backward()
            sgd.step()
        return time.perf_counter() - begun, time.process_time() - cpu

    return steps, len(labels)


def images_per_second(name, mode, batch, precision, seconds):
    """Median images/s of one mode, by wall time and by CPU time.

    Modes are eager and compile, _cl for channels-last.
    """
    steps, batch = trainer(name, mode, batch, precision)
    steps(3)
    block = max(1, min(10, round(0.3 / steps(1)[0])))  # ten small steps, single large ones
    steps(3 * block)
    blocks, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        blocks.append([block * batch / seconds for seconds in steps(block)])
    return [statistics.median(rates) for rates in zip(*blocks, strict=True)]


def main():
    """Times the requested modes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", default="lenet")
    parser.add_argument("--batch", type=int, default=0, help="0: the net's usual one")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32")
    parser.add_argument("--modes", default="eager,eager_cl,compile,compile_cl")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    modes = args.modes.split(",")
    if args.steps:
        trainer(args.net, modes[0], args.batch, args.precision)[0](args.steps)
        print(json.dumps({"mode": modes[0], "peak_mb": peak_mb()}))
        return
    wall, cpu = {}, {}
    for mode in modes:
        wall[mode], cpu[mode] = images_per_second(
            args.net, mode, args.batch, args.precision, args.seconds
        )
    figures = {"torch": torch.__version__, "images_per_s": wall, "images_per_cpu_s": cpu}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
