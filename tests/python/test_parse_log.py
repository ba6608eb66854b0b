# SPDX-License-Identifier: Apache-2.0
"""Tables from logs: of the real program, and of lines as Caffe writes them."""

import csv
import math
import sys

import pytest
from bars import make_work
from program import PROGRAM, run

from cafetiere import parse_log

CAFFE = """\
I1231 23:59:50.000000 25210 solver.cpp:280] Solving LeNet
I1231 23:59:50.000100 25210 solver.cpp:281] Learning Rate Policy: inv
I1231 23:59:51.500000 25210 solver.cpp:338] Iteration 0, Testing net (#0)
I1231 23:59:52.000000 25210 solver.cpp:406]     Test net output #0: accuracy = 0.1
I1231 23:59:52.000000 25210 solver.cpp:406]     Test net output #1: loss = 2.3 (* 1 = 2.3 loss)
no stamp: Train net output #0: loss = 7
I1231 23:59:52.500000 25210 solver.cpp:228] Iteration 0 (-3.6e-43 iter/s, 2s/100 iters), loss = 2.4
I1231 23:59:52.500000 25210 solver.cpp:244]     Train net output #0: loss = 2.4 (* 1 = 2.4 loss)
I1231 23:59:52.500000 25210 sgd_solver.cpp:106] Iteration 0, lr = 0.01
I0101 00:00:10.250000 25210 solver.cpp:228] Iteration 100 (5 iter/s, 20s/100 iters), loss = nan
I0101 00:00:10.250000 25210 solver.cpp:244]     Train net output #0: loss = -nan (* 1 = -nan loss)
I0101 00:00:10.250000 25210 sgd_solver.cpp:106] Iteration 100, lr = 1e-05
""".splitlines()


def test_reads_what_caffe_writes_over_the_turn_of_a_year():
    log = parse_log.parse_lines(CAFFE, 2024)
    assert log.test == [
        {"NumIters": 0, "Seconds": 2, "LearningRate": 0.01, "accuracy": 0.1, "loss": 2.3}
    ]
    first, second = log.train
    assert first == {"NumIters": 0, "Seconds": 2.5, "LearningRate": 0.01, "loss": 2.4}
    assert second["Seconds"] == 20.25 and second["LearningRate"] == 1e-05
    assert math.isnan(second["loss"])


def test_a_leap_day_is_one_whatever_year_the_file_is_of():
    lines = [
        "I0228 23:59:50.000000 1 solver.cpp:280] Solving LeNet",
        "I0229 00:00:10.000000 1 solver.cpp:228] Iteration 5 (1 iter/s), loss = 1",
        "I0229 00:00:10.000000 1 solver.cpp:244]     Train net output #0: loss = 1",
        "I0301 00:00:10.000000 1 solver.cpp:228] Iteration 6 (1 iter/s), loss = 1",
        "I0301 00:00:10.000000 1 solver.cpp:244]     Train net output #0: loss = 1",
        "I0230 00:00:10.000000 1 solver.cpp:244]     Train net output #0: loss = 3",
    ]
    for year in (2024, 2025, 2026):
        log = parse_log.parse_lines(lines, year)
        assert [row["Seconds"] for row in log.train] == [20, 86420]
        assert [row["loss"] for row in log.train] == [1, 1]


def test_a_log_without_a_training_gives_empty_tables(tmp_path):
    (tmp_path / "log").write_text("nothing\n")
    assert parse_log.main([str(tmp_path / "log"), str(tmp_path)]) == 0
    assert (tmp_path / "log.train").read_text().strip() == ""


def test_a_missing_log_is_one_line(tmp_path, capsys):
    assert parse_log.main([str(tmp_path / "none"), str(tmp_path)]) == 1
    assert "none" in capsys.readouterr().err


@pytest.fixture(scope="module")
def training_log(tmp_path_factory):
    if PROGRAM is None:
        pytest.skip("the program has not been built")
    folder = make_work(tmp_path_factory.mktemp("log"), "lmdb")
    (folder / "train.log").write_text(run("train", "-solver", "solver.prototxt", cwd=folder))
    return folder / "train.log"


def test_tables_of_the_real_program(training_log, tmp_path):
    assert parse_log.main([str(training_log), str(tmp_path), "--delimiter", ";"]) == 0
    tables = {}
    for kind in ("train", "test"):
        with (tmp_path / f"train.log.{kind}").open() as file:
            tables[kind] = list(csv.DictReader(file, delimiter=";"))
    train, test = tables["train"], tables["test"]
    assert [float(row["NumIters"]) for row in train] == [0, 5, 10, 15]
    assert [float(row["NumIters"]) for row in test] == [0, 10, 20]
    assert list(train[0]) == ["NumIters", "Seconds", "LearningRate", "loss"]
    assert list(test[0]) == ["NumIters", "Seconds", "LearningRate", "accuracy", "loss"]
    assert [float(row["LearningRate"]) for row in train] == [0.05, 0.05, 0.025, 0.0125]
    seconds = [float(row["Seconds"]) for row in train]
    assert seconds == sorted(seconds) and seconds[0] >= 0 and seconds[-1] < 120


def test_draws_a_picture_where_matplotlib_is(training_log, tmp_path):
    pytest.importorskip("matplotlib")
    assert parse_log.main([str(training_log), str(tmp_path), "--plot"]) == 0
    assert (tmp_path / "train.log.png").read_bytes().startswith(b"\x89PNG")


def test_says_what_a_picture_needs(training_log, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert parse_log.main([str(training_log), str(tmp_path), "--plot"]) == 1
    assert "matplotlib; install it" in capsys.readouterr().err
