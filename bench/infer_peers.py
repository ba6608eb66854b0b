#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inference speed of compiled PyTorch, ONNX Runtime and OpenVINO on the CPU, float32.

A forward pass on one resident batch. Prints one JSON object: images per second of each engine, the
median over passes, and the same per second of CPU time, which a busy machine disturbs least (of use
with one thread).
"""

import argparse
import json
import statistics
import tempfile
import time

import torch
from torch_nets import NETS


def passes(run, batch, seconds):
    """Median images/s by the clock and by CPU time."""
    for _ in range(3):
        run()
    blocks, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(blocks) < 5:
        begun, cpu = time.perf_counter(), time.process_time()
        run()
        blocks.append((batch / (time.perf_counter() - begun), batch / (time.process_time() - cpu)))
    return [statistics.median(rates) for rates in zip(*blocks, strict=True)]


def pytorch(net, images, channels_last):
    """A compiled net with frozen weights."""
    if channels_last:
        net = net.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    compiled = torch.compile(net, options={"freezing": True})

    def run():
        with torch.no_grad():
            compiled(images)

    return run


def model_file(net, images):
    """The net as an ONNX file."""
    path = tempfile.mkstemp(suffix=".onnx")[1]
    torch.onnx.export(net, (images,), path, dynamo=True, external_data=False, verbose=False)
    return path


def onnxruntime_of(path, images, threads):
    """ONNX Runtime's session."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: images.numpy()}
    return lambda: session.run(None, feed)


def openvino_of(path, images, threads):
    """OpenVINO's compiled model, in float32 for the least time of one request."""
    import openvino

    config = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    request = openvino.Core().compile_model(path, "CPU", config).create_infer_request()
    array = images.numpy()
    return lambda: request.infer([array])


def main():
    """Times the engines asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", default="lenet", choices=NETS)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--engines", default="compile,compile_cl,onnxruntime,openvino")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    build, _, shape, _ = NETS[args.net]
    net, images = build().eval(), torch.rand(args.batch, *shape)
    names, path = args.engines.split(","), None
    if {"onnxruntime", "openvino"} & set(names):
        path = model_file(net, images)
    engines = {
        "compile": lambda: pytorch(net, images, False),
        "compile_cl": lambda: pytorch(net, images, True),
        "onnxruntime": lambda: onnxruntime_of(path, images, args.threads),
        "openvino": lambda: openvino_of(path, images, args.threads),
    }
    wall, cpu = {}, {}
    for name in names:
        wall[name], cpu[name] = passes(engines[name](), args.batch, args.seconds)
    figures = {"net": args.net, "batch": args.batch, "images_per_s": wall, "images_per_cpu_s": cpu}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
