# SPDX-License-Identifier: Apache-2.0
"""`cafetiere fit`: the program learns what `python -m cafetiere fit` does, to the same bytes."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from both_programs import FILES, VISITORS, both, refused, run_program, run_python
from program import PROGRAM, ROOT, needs_the_program

from cafetiere import _cells, _split, tables
from cafetiere._library import library

FRACTIONS = "x,y\n" + "".join(f"{i},{i / 2}\n" for i in range(21))
pytestmark = needs_the_program


@pytest.mark.parametrize(
    "options",
    [
        "--label buys --drop id,spent --test TEST",
        "--label spent --features city,visits,since --epochs 3 --test TEST",
        "--label buys --class-weights balanced --weight visits --categorical id --layers 8",
        "--label visits --class-weights 3=5 --categorical age --threads 1 --seed 7 --batch 50",
        "--label visits --learn numbers --loss huber --huber-delta 0.5 --layers ''",
        "--label spent --drop id --members 3 --weight visits --validation 0.3",
        "--label spent --loss quantile --quantiles 0.1,0.5,0.9 --validation 0.25 --test TEST",
        "--label spent --drop id --validation 0.3 --patience 2 --lr 0.03 --epochs 200 --tol 1e-4",
    ],
)
def test_both_learn_the_same(options, tmp_path):
    head, *rows = VISITORS.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "train.csv").write_text("".join([head, *rows[:400]]), encoding="utf-8")
    test = tmp_path / "test.csv"
    test.write_text("".join([head, *rows[400:]]), encoding="utf-8")
    epochs = () if "--epochs" in options else ("--epochs", "2")
    told = both(
        tmp_path, tmp_path / "train.csv", *shlex.split(options.replace("TEST", str(test))), *epochs
    )
    assert ("test.csv: " in told) == ("TEST" in options)
    assert ("2 epochs were no better" in told) == ("--patience" in options)
    # The program predicts by what it wrote as Python does.
    predicted = [runs("predict", tmp_path / "program", test) for runs in (run_program, run_python)]
    assert predicted[0].returncode == 0, predicted[0].stderr
    assert predicted[0].stdout == predicted[1].stdout
    assert predicted[0].stdout.splitlines()[0].startswith(head.strip() + ",prediction")
    (tmp_path / "no_rows.csv").write_text(head)
    none = [
        runs("predict", tmp_path / "program", tmp_path / "no_rows.csv")
        for runs in (run_program, run_python)
    ]
    assert none[0].returncode == 0, none[0].stderr
    assert none[0].stdout == none[1].stdout == predicted[0].stdout.splitlines(True)[0]


def test_a_net_to_begin_with(tmp_path):
    columns = tables.read(VISITORS)
    columns = {name: columns[name] for name in ("age", "visits", "buys")}
    first, _ = tables.fit(columns, "buys", layers=[12], epochs=4)
    first.export_onnx(tmp_path / "whole.onnx")
    text = 'layer { name: "wide" type: "InnerProduct" bottom: "input" top: "wide" '
    text += 'inner_product_param { num_output: 9 weight_filler { type: "msra" } } }'
    (tmp_path / "hidden.prototxt").write_text(text, encoding="utf-8")
    export = pytest.importorskip("onnx").helper
    weights = np.random.default_rng(1).normal(size=(8, 3)).astype(np.float32)
    graph = export.make_graph(
        [export.make_node("MatMul", ["x", "w"], ["h"]), export.make_node("Relu", ["h"], ["y"])],
        "hidden",
        [export.make_tensor_value_info("x", 1, ["n", 8])],
        [export.make_tensor_value_info("y", 1, ["n", 3])],
        [export.make_tensor("w", 1, [8, 3], weights.tobytes(), raw=True)],
    )
    opset = export.make_opsetid("", 13)
    model = export.make_model(graph, opset_imports=[opset])
    (tmp_path / "hidden.onnx").write_bytes(model.SerializeToString())
    for net in ("hidden.prototxt", "hidden.onnx"):
        given = ("--label", "buys", "--features", "age,visits,since", "--epochs", "2")
        both(tmp_path, VISITORS, *given, "--net", tmp_path / net)


KINDS = {
    "number": ["1", " -2.5e3", "1e400", "1e-400", "007", ".5", "5.", "+1", "nan", "",
               "12345678901234567890"],
    "gaps": [""],
    "date": ["2026-07-01", "", "1970-01-01", "0001-12-31"],
    "moment": ["2026-07-01T12:30", "2026-07-01 12:30:01.5", "2026-07-01", "2026-07-01T12:30:00Z",
               "1969-07-01T00:00:00.1234567+02:00", '"2026-07-01T12:30:00,25-11:30"'],
    "text": ['"a ""town"""', '"one, two"', '"two\nlines"', '"cr\r\nlf"', "naïve 東京", "",
             " edge "],
    "underscore": ["1_000", "1"],
    "hex": ["0x10", "1"],
    "nan_of": ["nan(1)", "1"],
    "digits": ["１２", "1"],
    "comma": ['"1,5"', "1"],
    "sign": ["+-1", "1"],
    "basic": ["20260701", "2026-07-01"],
    "week": ["2026-W01-1", "2026-07-01"],
    "no_day": ["2026-02-30", "2026-07-01"],
    "hour": ["2026-07-01T12", "2026-07-01T12:30"],
    "other_separator": ["2026-07-01x12:30", "2026-07-01T12:30"],
    "seconds_of_offset": ["2026-07-01T12:30:00+01:00:30", "2026-07-01"],
    "late": ["2026-07-01T24:00", "2026-07-01"],
    "spaces": [" 2026-07-01", "2026-07-01"],
    "infinite_word": ["infinity ", "x"],
}  # fmt: skip
TEXTS = {"text", "underscore", "hex", "nan_of", "digits", "comma", "sign", "basic", "week",
         "no_day", "hour", "other_separator", "seconds_of_offset", "late", "spaces",
         "infinite_word"}  # fmt: skip


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_both_find_the_same_types(end, tmp_path):
    rows = [",".join([*KINDS, "größe"])]
    for i in range(154):
        rows.append(",".join([*(cells[i % len(cells)] for cells in KINDS.values()), "pq"[i % 2]]))
    rows[5:5] = [""]  # an empty line
    text = end.join(rows) + end * 2
    finite = text.replace("1e400", "1e40")
    path = tmp_path / "kinds.csv"
    path.write_bytes(b"\xef\xbb\xbf" + finite.encode())
    both(tmp_path, path, "--label", "größe", "--epochs", "1", "--validation", "0.3")
    types = tables.TableModel.load(tmp_path / "program").types
    assert {name for name, kind in types.items() if kind == "string"} == TEXTS
    assert [types[name] for name in ("number", "gaps", "date", "moment")] == [
        "f64",
        "f64",
        "i32",
        "i64",
    ]
    path.write_bytes(text.encode())
    for said in refused(path, "--label", "größe"):
        assert '"number"' in said and "inf" in said, said


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("x,y\n1,a\n", "--label z", "there is no column .z.; there are x, y"),
        ("x,y\n1,a\n", "--label y --drop z", "there is no column .z."),
        ("x,y\n1,a\n", "--label y --features z", "there is no column .z."),
        ("x,y\n1,a\n", "--label y --categorical z", "there is no column .z."),
        ("x,y\n1,a\n", "--label y --weight z", "there is no column .z."),
        ("x,y\n1,a\n", "--label y --features y", "column .y. is the label or the weight"),
        ("x,y\n1,a\n", "--label y --drop x", "there is no column to learn from"),
        ("x,y\n1,a\n2,b\n", "--label y --patience 2", "validation 0.1 holds back none of 2 rows"),
        ("x,y\n1,a\n2,b\n", "--label y --validation 0.001", "holds back none of 2 rows"),
        ("x,y\n1,a\n2,b\n", "--label y --loss huber", "learned as classes: give --learn numbers"),
        ("x,y\n1,1.5\n2,2\n", "--label y --loss quantile", "need each other"),
        ("x,y\n1,1.5\n2,2\n", "--label y --quantiles 0.5", "need each other"),
        ("x,y\n1,a\n2,b\n", "--label y --learn numbers", '"y" has "a" in row 1 below the header'),
        ("x,y\n1,a\n2,a\n", "--label y", 't.csv: column "y" is "a" in each row, so .* --label'),
        ("x,y\n1,a\n2,\n3,\n", "--label y", '"y" is empty in 2 of 3 rows, first in row 2 below'),
        ("x,y\n,a\n2,b\n", "--label y --weight x", "no column to learn from"),
        ("x,y,z\n1,a,\n2,b,1\n", "--label y --weight z", '"z" is empty in 1 of 2 rows'),
        (",x,y\n0,1,a\n1,2,b\n", "--label y", "t.csv: column 1 has no name; name it in .* --feat"),
        ("x;y\n1;a\n", "--label y", "there are x;y; the cells of a CSV are separated by commas"),
        ("x;y\n1,5;a\n", "--label y", "2 cells, .* 1; the cells of a CSV are separated by commas"),
        (
            FRACTIONS,
            "--label y --learn classes",
            "21 different numbers, such as 0.5: .*--learn numb",
        ),
        ("hue,buys\n1,a\n2,b\n", "--label buy", "did you mean .buys."),
        ("x,y\n1,a\n2,b\n", "--label y --validation 0 --patience 2", "give --validation a share"),
        ("x,y\n1,a\n2,b\n", "--label y --weight x --drop x", "there is no column to learn from"),
        ("x,y\n", "--label y", "t.csv: there are no rows below the header"),
        ("", "--label y", "there is no line that names the columns"),
        ("x,y\n1,a\n2\n", "--label y", "3.* 1 cells, and the head(er)? has 2"),
        ("x,x\n1,a\n", "--label x", "two columns are called .x.; rename one"),
        ('x,y\n1,"a\n', "--label y", "t.csv:"),
        ('x,y\n1,"a"b\n', "--label y", "t.csv: ?(line )?2: "),
        ("x,y\n1,a\n2,b\n", "--label y --batch 0", "batch"),
        ("x,y\n1,a\n2,b\n", "--label y --epochs 0", "epochs"),
        ("x,y\n1,a\n2,b\n", "--label y --validation 1", "validation"),
        ("x,y\n1,a\n2,b\n", "--label y --layers 8,x", "layers"),
        ("x,y\n1,a\n2,b\n", "--label y --test none.csv", "none.csv"),
        ("x,y\n1,a\n2,b\n", "--label y --net none.prototxt", "none.prototxt"),
        ("x,y\n1,a\n2,b\n", "--label y --learn nothing", "learn"),
    ],
)
def test_both_tell_what_is_wrong(text, options, said, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    for error in refused(path, *options.split()):
        assert re.search(said, error), error


def test_columns_without_a_name_may_be_there(tmp_path):
    """As DataFrame.to_csv() writes the index."""
    table = tmp_path / "t.csv"
    table.write_text(",x,y\n0,1,a\n1,2,b\n", encoding="utf-8")
    told = both(tmp_path, table, "--label", "y", "--features", "x", "--epochs", "1")
    assert "from 1 column" in told


def test_bytes_that_are_no_text_and_files_of_another_kind(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("x,y\n1,é\n".encode("latin-1"))
    for error in refused(path, "--label", "y"):
        assert "latin.csv" in error and "UTF-8" in error
    for error in refused(tmp_path, "--label", "y"):
        assert re.search("is a folder.*; name a (CSV|file) in it", error), error
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/part-0.parquet").write_bytes(b"PAR1")
    for path in (tmp_path / "t.parquet", tmp_path / "parts"):
        for command in (["fit", path, "--label", "y"], ["predict", tmp_path / "model", path]):
            done = run_program(*command)
            assert done.returncode == 1
            assert f"`python -m cafetiere {command[0]}` with the same flags" in done.stderr
    for error in refused(tmp_path / "t.csv", "--label", "y"):
        assert re.search("File not found: .*t.csv|t.csv: No such file", error), error


def test_a_table_to_test_on_is_looked_at_before_the_training(tmp_path):
    table, test = tmp_path / "t.csv", tmp_path / "test.csv"
    table.write_text("x,y\n1,a\n2,b\n", encoding="utf-8")
    for text, said in (
        ("x\n1\n", "there is no column .y."),
        ("y,x\na,much\n", "column .x., row 0: .much. is no"),
    ):
        test.write_text(text, encoding="utf-8")
        for error in refused(table, "--label", "y", "--test", test):
            assert re.search(said, error), error
    test.write_text("y,x\na,1\n,2\n", encoding="utf-8")
    told = both(tmp_path, table, "--label", "y", "--test", test, "--epochs", "1")
    assert re.search(r"test.csv: accuracy [01]\.0000", told)  # of the row with a label
    test.write_text("y,x\n,1\n", encoding="utf-8")
    told = both(tmp_path, table, "--label", "y", "--test", test, "--epochs", "1")
    assert "test.csv: no row has a label" in told


@pytest.fixture
def long_fit(tmp_path):
    """The arguments of a fit that takes long."""
    flags = ("--label", "buys", "--epochs", "5000000", "--layers", "8")
    return ["fit", VISITORS, *flags, "--out", tmp_path / "model"]


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_signal_ends_the_program_with_the_model_so_far(long_fit, tmp_path):
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen([PROGRAM, *long_fit], stderr=file, stdout=subprocess.PIPE)
    wait_for(lambda: b"rows/s" in log.read_bytes())  # the progress, with the time that is left
    assert b"ETA" in log.read_bytes()
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert re.search(rb"stopped by a signal after [1-9]\d* of \d+ steps", told), told
    assert b"visitors.csv: accuracy" in told
    done = run_program("predict", tmp_path / "model", VISITORS)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 601


def test_an_ignored_signal_ends_nothing(tmp_path):
    """As under nohup, whose terminal is closed."""
    flags = ("--label", "buys", "--epochs", "20000", "--layers", "8", "--out", tmp_path / "model")
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [PROGRAM, "fit", VISITORS, *flags],
            stderr=file,
            stdout=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
    wait_for(lambda: b"rows/s" in log.read_bytes())
    process.send_signal(signal.SIGHUP)
    told, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert b"stopped by a signal" not in told, told


def test_ctrl_c_ends_python(long_fit, tmp_path):
    code = (
        "import sys, threading, _thread, cafetiere.tables as tables, cafetiere.__main__ as main\n"
        "fit = tables.fit\n"
        "def told(*a, on_event, **k):\n"
        "    return fit(*a, **k, on_event=lambda e: (print('told', flush=True), on_event(e)))\n"
        "tables.fit = told\n"
        "sys.exit(main.main())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *long_fit],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT, errors
    assert errors == b"cafetiere: interrupted\n"


def test_ctrl_c_is_heard_while_an_object_is_destroyed(monkeypatch):
    destroy = library().cft_table_destroy

    def interrupted(table):
        destroy(table)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(library(), "cft_table_destroy", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tables.fit(tables.read(VISITORS), "buys", epochs=1)


def test_events_of_a_training_are_told():
    columns = tables.read(VISITORS)
    events = []
    options = {"validation": 0.2, "epochs": 3, "features": ["age", "city"]}
    _, result = tables.fit(columns, "buys", **options, on_event=events.append)
    tests = [event for event in events if event["event"] == "test"]
    assert len(tests) >= 3 and "loss" in tests[0]["outputs"]
    assert events[-1]["step"] == result["steps"]

    def fails(event):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        tables.fit(columns, "buys", on_event=fails)


def test_equal_rows_are_held_out_together():
    rows = _cells.rows_apart({"a": ["1", "2"] * 500 + [str(i) for i in range(1000)]}, {"a": "f64"})
    held_out = [_split.is_held_out(row, 0.25) for row in rows]
    assert len(set(held_out[0:1000:2])) == 1 and len(set(held_out[1:1000:2])) == 1
    assert 200 < sum(held_out[1000:]) < 300


def write_noise(path, rows, classes=2):
    """A table whose label has nothing to do with the rest."""
    lines = [f"{i * 7919 % rows},{i * i % classes}" for i in range(rows)]
    path.write_text("\n".join(["x,y", *lines, ""]), encoding="utf-8")


@pytest.mark.parametrize(
    ("rows", "flags", "said"),
    [
        (99, "", "no rows are held back of fewer than 100; --validation 0.1 holds"),
        (100, "", "\nno early stopping on a table of fewer than 1,500 rows; --patience 10"),
        (1499, "", "\nno early stopping on a table of fewer than 1,500 rows; --patience 10"),
        (1500, "", "; 10 epochs were no better\n"),
        (1500, "--patience 0", "s, loss [0-9.]+\n1[0-9]+ rows held back: accuracy .*commonest"),
        (1500, "--validation 0", "s, loss [0-9.]+\n/.*.csv: accuracy"),
        (99, "--patience 3", "; 3 epochs were no better\n(1?[0-9]) rows held back: accuracy"),
        (99, "--validation 0.2", "\nno early stopping .*\n31 rows held back: accuracy"),
        (
            100,
            "--learn numbers",
            "rows held back: root mean squared error .* .always the mean: 0.5",
        ),
    ],
)
def test_what_is_held_back_and_when_it_stops(rows, flags, said, tmp_path):
    write_noise(tmp_path / "noise.csv", rows)
    told = both(tmp_path, tmp_path / "noise.csv", "--label", "y", "--lr", "0.05", *flags.split())
    assert re.search(said, told), told


def test_a_class_is_not_held_back_as_a_whole(tmp_path):
    # Each is in one row or two, of which the hash would hold some back.
    lines = [f"{i},{'abc'[i % 3] if i < 150 else i // 2}" for i in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *lines, ""]), encoding="utf-8")
    told = both(tmp_path, tmp_path / "t.csv", "--label", "y", "--learn", "classes", "--epochs", "1")
    assert "learning y (28 classes)" in told
    _, result = tables.fit(
        tables.read(tmp_path / "t.csv"), "y", epochs=1, validation=None, patience=None
    )
    assert f"\n{len(result['held_out'])} rows held back" in told
    labels = [line.partition(",")[2] for line in lines]
    trained = {label for place, label in enumerate(labels) if place not in result["held_out"]}
    assert len(trained) == 28 and result["early_stopping"] is None


def test_equal_rows_leave_nothing_to_hold_back(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "1,a\n2,b\n" * 60, encoding="utf-8")
    told = both(tmp_path, tmp_path / "t.csv", "--label", "y", "--epochs", "1")
    assert "no rows were held back" in told


def test_without_a_folder_the_model_is_beside_the_table(tmp_path):
    table = tmp_path / "some rows.csv"
    write_noise(table, 20)
    flags = ("--label", "y", "--epochs", "1")
    for runs in (run_program, run_python):
        done = runs("fit", table, *flags)
        assert done.returncode == 0, done.stderr
        model = tmp_path / "some rows.model"
        assert {path.name for path in model.iterdir()} == {*FILES, "report.html"}
        assert f"predict '{model}' TABLE" in done.stdout
        assert runs("predict", model, table).returncode == 0
        (model / "net.prototxt").write_text("mine", encoding="utf-8")
        done = runs("fit", table, *flags)
        assert done.returncode == 1 and "is there already: --out" in done.stderr
        assert (model / "net.prototxt").read_text() == "mine"
        assert runs("fit", table, *flags, "--out", model).returncode == 0
        assert (model / "net.prototxt").read_text() != "mine"
        (model / "table.json").unlink()
        done = runs("fit", table, *flags, "--out", model)
        assert done.returncode == 1 and "net.prototxt, which is of no model" in done.stderr
        for path in model.iterdir():
            path.unlink()  # an empty folder may stay


def test_folders_that_cannot_be_written_are_told_at_once(tmp_path):
    table = tmp_path / "t.csv"
    write_noise(table, 20)
    for out in (table, "/proc/model"):
        for runs in (run_program, run_python):
            done = runs("fit", table, "--label", "y", "--out", out)
            assert done.returncode == 1
            assert "name a folder for the model by --out" in done.stderr, done.stderr


def test_the_program_and_python_show_progress(tmp_path):
    write_noise(tmp_path / "t.csv", 200)
    for runs in (run_program, run_python):
        out = ("--out", tmp_path / "model")
        done = runs("fit", tmp_path / "t.csv", "--label", "y", "--epochs", "3", *out)
        first, *_, last = done.stderr.splitlines()
        for part in ("step 1/3", "loss ", "validation loss ", "validation accuracy ", "epoch 1.0"):
            assert f"  {part}" in first, first
        assert re.search(r"  [\d,]+ rows/s  ETA \d:\d\d  ", first), first
        assert last.startswith("100%  step 3/3") and "  took 0:0" in last


@pytest.mark.parametrize("python", [False, True])
def test_a_terminal_of_a_hundred_columns_shows_the_time_left(python, tmp_path):
    program = f"{sys.executable} -m cafetiere" if python else str(PROGRAM)
    command = f"stty cols 100; {program} fit {VISITORS} --label buys --epochs 300 --out {tmp_path}"
    done = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "TERM": "xterm", "NO_COLOR": "1"},
        capture_output=True, check=False, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    lines = [line for line in re.split(r"[\r\n]+(?:\x1b\[K)?", done.stdout) if "step " in line]
    assert all(len(line) < 100 for line in lines), lines
    assert re.search(r"rows/s  ETA \d:\d\d", lines[0]), lines[0]
