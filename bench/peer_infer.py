#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inference speed of PyTorch, onnxruntime and OpenVINO on the CPU: images/s of a forward pass.

Modes are those of torch_train.py, and onnxruntime and openvino, which get the model that PyTorch
exports. Prints one JSON object: images per second in each mode, the median over passes, and the
same per second of CPU time.
"""

import argparse
import json
import os
import pathlib
import statistics
import tempfile
import time

os.environ.setdefault("TORCHINDUCTOR_FREEZING", "1")  # weights are constants to the compiler

import torch
from torch_common import built_net, images_of


def exported(name, batch, folder):
    """The path of the net as an ONNX model for this batch."""
    net, _ = built_net(name, "eager")
    path = str(pathlib.Path(folder) / "net.onnx")
    torch.onnx.export(
        net.eval(), (images_of(name, "eager", batch)[0],), path, dynamo=True, verbose=False
    )
    return path


def torch_pass(name, mode, batch, threads, precision):
    """A function that computes the scores in PyTorch."""
    torch.set_num_threads(threads)
    net, run = built_net(name, mode)
    net.eval()
    images = images_of(name, mode, batch)[0]
    if precision == "bf16":
        net.to(torch.bfloat16)
        images = images.to(torch.bfloat16)

    def scores():
        with torch.no_grad():
            run(images)

    return scores


def onnxruntime_pass(name, _, batch, threads, precision):
    """The same in onnxruntime, which has no bfloat16 for CPUs."""
    import onnxruntime

    if precision != "float32":
        raise ValueError("onnxruntime computes in float32 on CPUs")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    with tempfile.TemporaryDirectory() as folder:
        path = exported(name, batch, folder)
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    images = images_of(name, "eager", batch)[0].numpy()
    feed = {session.get_inputs()[0].name: images}
    return lambda: session.run(None, feed)


def openvino_pass(name, _, batch, threads, precision):
    """The same in OpenVINO."""
    import openvino

    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
    }
    with tempfile.TemporaryDirectory() as folder:
        model = openvino.Core().compile_model(exported(name, batch, folder), "CPU", settings)
    request = model.create_infer_request()
    images = images_of(name, "eager", batch)[0].numpy()
    return lambda: request.infer([images], share_inputs=True)


PASSES = {"onnxruntime": onnxruntime_pass, "openvino": openvino_pass}


def rates(scores, batch, seconds):
    """Median images/s, by wall time and by CPU time."""
    for _ in range(3):
        scores()
    passes, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(passes) < 5:
        begun, cpu = time.perf_counter(), time.process_time()
        scores()
        passes.append((time.perf_counter() - begun, time.process_time() - cpu))
    return [batch / statistics.median(column) for column in zip(*passes, strict=True)]


def main():
    """Times the requested modes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", default="lenet")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32")
    parser.add_argument("--modes", default="compile,compile_cl,openvino")
    args = parser.parse_args()
    wall, cpu = {}, {}
    for mode in args.modes.split(","):
        make = PASSES.get(mode, torch_pass)
        scores = make(args.net, mode, args.batch, args.threads, args.precision)
        wall[mode], cpu[mode] = rates(scores, args.batch, args.seconds)
    print(json.dumps({"images_per_s": wall, "images_per_cpu_s": cpu}))


if __name__ == "__main__":
    main()
