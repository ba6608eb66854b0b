# SPDX-License-Identifier: Apache-2.0
"""Ranks on hosts whose links are slow or break; needs the right to make network namespaces."""

import importlib.util
import pathlib
import re
import shutil
import subprocess

import pytest
from test_ranks import Ranks, folder_in, pytestmark, weights, work  # noqa: F401

RIG = pathlib.Path(__file__).resolve().parents[2] / "tools" / "rig" / "network.py"
spec = importlib.util.spec_from_file_location("rig_network", RIG)
rig = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rig)


@pytest.fixture
def join():
    """Makes a network of two hosts on links of one kind, and removes it after the test."""
    networks = []

    def make(link):
        if not (shutil.which("ip") and shutil.which("tc")):
            pytest.skip("no ip and tc (iproute2) here")
        try:
            networks.append(rig.Network(2, link).__enter__())
        except subprocess.CalledProcessError as refused:
            pytest.skip(f"no right to make network namespaces: {refused}")
        return networks[-1]

    yield make
    for network in networks:
        network.__exit__()


def test_a_slow_link_only_slows(work, tmp_path, join):  # noqa: F811
    flags = ["--shards", "2"]
    alone, apart = folder_in(tmp_path, "alone"), folder_in(tmp_path, "apart")
    assert Ranks(work, alone, 1, *flags).wait()[0][0] == 0
    ends = Ranks(work, apart, 2, *flags, network=join(rig.Link(1, 16))).wait()
    assert [code for code, _ in ends] == [0, 0], ends
    assert weights(apart) == weights(alone)


def test_a_link_that_drops_everything_is_told_by_both_ends(work, tmp_path, join):  # noqa: F811
    network = join(rig.LINKS["1gbe"])
    ranks = Ranks(work, tmp_path, 2, "--max_iter", "1000000", network=network)
    first = ranks.processes[0]
    while "Iteration 5 " not in first.stdout.readline():
        assert first.poll() is None
    network.drop(1)
    for rank, (code, log) in enumerate(ranks.wait()):
        told = log.splitlines()[-1]
        assert code == 1
        lost = rf"rank {1 - rank} at .* (has been silent for 6\.\d s|cannot be reached any more)"
        assert re.search(lost, told), told
