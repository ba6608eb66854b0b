# SPDX-License-Identifier: Apache-2.0
"""What must hold after a fit, and after all of them: each function returns what does not."""

import pathlib
import time

import plan
from cluster import Cluster, words

LEAST_ACCURACY = 0.9
GONE_SECONDS = 60


def of_result(engine: str, mode: str, result: dict, calm: dict, rows: int) -> list[str]:
    """Bits or accuracy, steps and rows of a disturbed fit beside an undisturbed one."""
    if "error" in result:
        return [f"the fit failed: {result['error']}"]
    faults = []
    if plan.promises_bits(engine, mode):
        if result["sha256"] != calm["sha256"]:
            faults.append(f"sha256 {result['sha256']} instead of {calm['sha256']}")
    elif result["accuracy"] < LEAST_ACCURACY:
        faults.append(f"accuracy {result['accuracy']:.3f}, below {LEAST_ACCURACY}")
    if result["steps"] != plan.STEPS[engine]:
        faults.append(f"{result['steps']} steps instead of {plan.STEPS[engine]}")
    # The first and the last pass may be parts: of a run that goes on, and of one that ends.
    # Survivors and easgd train on without the rows of a rank that is away.
    passes = result["rows_per_epoch"]
    partial = engine == "survivors" or mode in ("easgd", "downpour")
    if not partial and any(passed != rows for passed in passes[1:-1]):
        faults.append(f"rows of the passes: {passes}")
    if result["rows_given"] != rows:
        faults.append(f"{result['rows_given']} rows instead of {rows}")
    return faults


def of_checkpoints(folder: pathlib.Path) -> list[str]:
    """A run that could have been resumed leaves no checkpoint when it has ended."""
    return [f"left: {path}" for path in sorted(folder.rglob("*")) if path.is_file()]


def of_processes(cluster: Cluster) -> list[str]:
    """Nothing but Spark's daemons outlives the sessions."""
    deadline = time.monotonic() + GONE_SECONDS
    while (left := cluster.sessions()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return [f"process {pid} is left: {words(pid)[:200]}" for pid in left]


def of_files(cluster: Cluster, driver_killed: bool) -> list[str]:
    """Nothing of ours stays in the temporary folder, and no file in Spark's local one.

    A driver that is killed leaves Spark's own files there, as it does without Cafetiere.
    """
    left = [path for path in cluster.temporary.rglob("*") if "cafetiere" in path.name]
    for path in cluster.local.rglob("*"):
        if "cafetiere" in path.name or path.is_file() and not driver_killed:
            left.append(path)
    return [f"left: {path}" for path in left]
