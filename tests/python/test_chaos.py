# SPDX-License-Identifier: Apache-2.0
"""Which faults tools/chaos draws and what it holds against a fit; `./test faults` runs it."""

import dataclasses
import itertools
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "faults"))
import checks  # noqa: E402
import plan  # noqa: E402

ROWS = 100
GOOD = {
    "sha256": "a",
    "accuracy": 0.95,
    "steps": 400,
    "rows_given": ROWS,
    "rows_per_epoch": [ROWS] * 3,
}


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


@pytest.mark.parametrize(
    ("mode", "change", "wrong"),
    [
        ("average", {}, ""),
        ("average", {"rows_per_epoch": [30, ROWS, 7]}, ""),
        ("average", {"sha256": "b"}, "sha256 b instead of a"),
        ("easgd", {"sha256": "b"}, ""),
        ("easgd", {"accuracy": 0.5}, "accuracy 0.500"),
        ("average", {"steps": 399}, "399 steps"),
        ("average", {"rows_given": ROWS - 1}, "99 rows instead of 100"),
        ("average", {"rows_per_epoch": [ROWS, ROWS - 1, ROWS]}, "99"),
        ("easgd", {"rows_per_epoch": [ROWS, ROWS - 1, ROWS]}, ""),
        ("average", {"error": "lost"}, "lost"),
    ],
)
def test_a_fit_is_held_against_an_undisturbed_one(mode, change, wrong):
    found = checks.of_result("barrier", mode, GOOD | change, GOOD, ROWS)
    assert len(found) == bool(wrong) and wrong in "".join(found)


def test_survivors_account_for_the_rows_of_all_partitions():
    result = GOOD | {"steps": 1200, "rows_per_epoch": [ROWS, 50, ROWS]}
    assert checks.of_result("survivors", "average", result, GOOD, ROWS) == []
    assert checks.of_result("survivors", "average", result | {"rows_given": 99}, GOOD, ROWS) == [
        "99 rows instead of 100"
    ]


def test_a_checkpoint_that_is_left_is_told(tmp_path):
    assert checks.of_checkpoints(tmp_path) == []
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-1" / "manifest.json").touch()
    assert "manifest.json" in checks.of_checkpoints(tmp_path)[0]
