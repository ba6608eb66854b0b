# SPDX-License-Identifier: Apache-2.0
"""How many cores this process may use, which in a container is less than the machine has."""

import math
import os
import pathlib


def available(root="/"):
    """The cores of the CPU affinity, or as many as the cgroup's quota is worth where that is less.

    `root` is where proc and sys are.
    """
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        allowed = os.cpu_count() or 1
    quotas = [math.ceil(quota) for quota in _quotas(pathlib.Path(root))]
    return max(1, min([allowed, *quotas]))


def _quotas(root):
    """The quotas, in cores, of the cgroups that this process is in and of those around them."""
    mounts = root / "sys/fs/cgroup"
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _walk(mounts, path, _quota_v2)
        elif "cpu" in controllers.split(","):
            yield from _walk(mounts / "cpu", path, _quota_v1)


def _walk(mount, path, quota):
    # Within a container the path may be the host's, and the mount the container's own group.
    folder = mount / path.lstrip("/")
    for group in (folder, *folder.parents):
        if group == mount or mount in group.parents:
            try:
                of_group = quota(group)
            except (OSError, ValueError):
                continue  # no such file, or "max": no quota
            if of_group > 0:
                yield of_group


def _quota_v2(group):
    quota, period = (group / "cpu.max").read_text().split()
    return int(quota) / int(period)


def _quota_v1(group):
    quota, period = (
        int((group / f"cpu.cfs_{what}_us").read_text()) for what in ("quota", "period")
    )
    return quota / period  # negative: none
