#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gloo's all-reduce through PyTorch, timed as comm_bench times ours.

gloo_all_reduce.py RANKS prints the seconds of each run on rank 0 by the array's KiB, as JSON.
"""

import json
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank_main(rank, ranks, folder):
    """One rank's part: every size in turn."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=ranks
    )
    report = {}
    for kib in (4, 1024, 28 * 1024, 244 * 1024):
        arena = torch.zeros(kib * 256)
        seconds = []
        for _ in range(3 + min(400, max(5, (1 << 20) // kib))):
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(arena)
            seconds.append(time.perf_counter() - start)
        report[kib] = seconds[3:]
    if rank == 0:
        print(json.dumps(report))
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(rank_main, (int(sys.argv[1]), folder), nprocs=int(sys.argv[1]))
