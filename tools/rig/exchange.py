# SPDX-License-Identifier: Apache-2.0
"""All-reduces over a link of the rig, timed by bench/scale's exchange_bench."""

import json
import subprocess
import tempfile

from network import LINKS, Network


def measure_exchanges(programs, link, ranks, sizes):
    """Milliseconds of all-reduces of so many floats: (with float32, with bfloat16 on the wire)."""
    with tempfile.TemporaryDirectory() as folder, Network(ranks, LINKS[link]) as network:
        processes = []
        for rank in range(ranks):
            command = [programs / "exchange_bench", ranks, rank]
            command += [f"{folder}/meet", network.address(rank), *sizes]
            command = [str(word) for word in command]
            where = subprocess.PIPE if rank == 0 else subprocess.DEVNULL
            processes.append(network.start(rank, command, stdout=where, text=True))
        out = processes[0].communicate(timeout=300)[0]
        for process in processes:
            process.wait()
    rows = map(json.loads, out.splitlines())
    return [(row["ms"], row["ms_bfloat16"]) for row in rows]
