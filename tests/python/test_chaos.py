# SPDX-License-Identifier: Apache-2.0
"""Which faults tools/chaos draws, and that a list of them is read back; `./test faults` runs it."""

import dataclasses
import importlib.util
import itertools
import json
import pathlib

import pytest

PLAN = pathlib.Path(__file__).resolve().parents[2] / "tools" / "faults" / "plan.py"
spec = importlib.util.spec_from_file_location("faults_plan", PLAN)
plan = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plan)


def fits(seed, engine, mode, count=3):
    return list(itertools.islice(plan.drawn(seed, engine, mode), count))


@pytest.mark.parametrize(("engine", "mode"), plan.PAIRS)
def test_three_fits_have_faults_of_every_kind_each_later_than_the_one_before(engine, mode):
    drawn = fits(1, engine, mode)
    assert {fault.kind for faults in drawn for fault in faults} == set(plan.KINDS)
    for faults in drawn:
        steps = [fault.step for fault in faults]
        assert steps == sorted(set(steps))
        assert steps[0] > 0 and steps[-1] < plan.STEPS[engine]


def test_a_seed_draws_the_same_faults_again_and_another_one_others():
    assert fits(1, "barrier", "average") == fits(1, "barrier", "average")
    assert fits(1, "barrier", "average") != fits(2, "barrier", "average")


def test_a_list_is_read_back(tmp_path):
    written = {pair: fits(1, *pair) for pair in plan.PAIRS[:2]}
    with open(tmp_path / "faults.jsonl", "w") as file:
        for turn in zip(*written.values(), strict=True):
            for faults in turn:
                for fault in faults:
                    print(json.dumps(dataclasses.asdict(fault)), file=file)
                print(json.dumps({"outcome": "as promised", "seconds": 9}), file=file)
    assert plan.listed(tmp_path / "faults.jsonl") == written
