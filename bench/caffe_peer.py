# SPDX-License-Identifier: Apache-2.0
"""How fast BVLC Caffe 1.0 with OpenBLAS trains a net of bench/run, as a line of JSON.

    caffe_peer.py --net FILE [--threads T] [--seconds S]

Caffe runs as `caffe train` does, on a batch that is already in memory (DummyData of constants):
nothing is read or decoded. A rate is that of the steps by which one run is longer than another, so
that starting up does not count. Needs what tools/reference_caffe builds.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

RUNNER = pathlib.Path(__file__).resolve().parent.parent / "build" / "reference" / "caffe_runner"
SOLVER = """base_lr: 0.0001 momentum: 0.9 weight_decay: 0.0005 lr_policy: "fixed" random_seed: 1
snapshot_format: BINARYPROTO max_iter: %d %s"""
MEMORY_DATA = re.compile(r'type: "MemoryData"(.*?)memory_data_param \{(.*?)\}', re.DOTALL)


def fed_by_constants(net):
    """The net's text with a data source that costs nothing, and its batch size."""
    found = MEMORY_DATA.search(net)
    if not found:
        sys.exit("the net has no MemoryData")
    fields = dict(re.findall(r"(\w+): (\d+)", found[2]))
    batch = fields["batch_size"]
    sizes = [batch, *(fields[name] for name in ("channels", "height", "width"))]
    shape = " ".join(f"dim: {size}" for size in sizes)
    made = (
        f'type: "DummyData"{found[1]}dummy_data_param {{ shape {{ {shape} }}'
        f" shape {{ dim: {batch} }} data_filler {{ value: 0.5 }} data_filler {{ value: 1 }} }}"
    )
    return MEMORY_DATA.sub(made, net), int(batch)


def run(folder, steps, threads):
    """Wall and CPU seconds of a process that trains FOLDER/net for that many steps."""
    more = f'net: "{folder}/net" snapshot_prefix: "{folder}/model" solver_mode: CPU'
    solver = folder / "solver"
    solver.write_text(SOLVER % (steps, more))
    env = os.environ | {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [RUNNER, "train", solver, folder / "out"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"Caffe failed:\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - begun, spent


def main():
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--net", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5)
    args = parser.parse_args()
    if not RUNNER.exists():
        sys.exit(f"{RUNNER} is missing; run tools/reference_caffe")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        net, batch = fed_by_constants(args.net.read_text())
        (folder / "net").write_text(net)
        start, first = run(folder, 1, args.threads), run(folder, 3, args.threads)
        steps = max(2, round(args.seconds * 2 / max(first[0] - start[0], 1e-3)))
        last = run(folder, 1 + steps, args.threads)
        wall, cpu = (batch * steps / (b - a) for a, b in zip(start, last, strict=True))
    print(json.dumps({"images_per_s": {"Caffe": wall}, "images_per_cpu_s": {"Caffe": cpu}}))


if __name__ == "__main__":
    main()
