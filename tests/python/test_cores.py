# SPDX-License-Identifier: Apache-2.0
"""The cores that a process may use."""

import argparse
import os

import pytest

from cafetiere import _cores, _fit

MACHINE = len(os.sched_getaffinity(0))


def files(root, **texts):
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))


@pytest.mark.parametrize(
    ("cgroup", "group", "cores"),
    [
        ({"cpu.max": "200000 100000\n"}, "0::/\n", 2),
        ({"cpu.max": "150000 100000\n"}, "0::/\n", 2),
        ({"cpu.max": "10000 100000\n"}, "0::/\n", 1),
        ({"cpu.max": "max 100000\n"}, "0::/\n", 64),
        ({"pod/cpu.max": "300000 100000\n", "pod/box/cpu.max": "max 100000"}, "0::/pod/box\n", 3),
        ({"cpu.max": "400000 100000\n"}, "0::/of/the/host\n", 4),
        (
            {"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"},
            "11:memory:/pod\n4:cpu,cpuacct:/pod\n",
            2,
        ),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, "4:cpu:/\n", 64),
        ({}, "0::/\n", 64),
    ],
)
def test_a_quota_is_kept_to(cgroup, group, cores, many, tmp_path):
    names = {f"sys/fs/cgroup/{name}": text for name, text in cgroup.items()}
    assert _cores.available(files(tmp_path, **names, **{"proc/self/cgroup": group})) == cores


def test_no_more_than_the_affinity(tmp_path):
    quota = {"sys/fs/cgroup/cpu.max": "6400000 100000", "proc/self/cgroup": "0::/\n"}
    assert _cores.available(files(tmp_path, **quota)) == MACHINE
    assert _cores.available(tmp_path / "nowhere") == MACHINE


def test_fit_takes_as_many_threads(monkeypatch):
    monkeypatch.setattr(_cores, "available", lambda: 3)
    parser = argparse.ArgumentParser()
    _fit.add_fit(parser.add_subparsers())
    assert parser.parse_args(["fit", "rows.csv", "--label", "y"]).threads == 3
