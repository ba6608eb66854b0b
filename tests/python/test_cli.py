# SPDX-License-Identifier: Apache-2.0
"""The command line program, run as users run it, on databases made from generated digits."""

import json
import re
import signal
import subprocess

import pytest
from bars import NET, SOLVER, make_work
from program import PROGRAM, needs_the_program, run, wait_for

from cafetiere import _cores

pytestmark = needs_the_program

GLOG = re.compile(r"^[IWE]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [^\]:]+:\d+\] ")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with databases, a net, a solver and the snapshots of a whole run; and its log."""
    folder = make_work(tmp_path_factory.mktemp("cli"), "lmdb")
    return folder, run("train", "-solver", "solver.prototxt", cwd=folder)


def test_log_lines_are_those_that_scripts_parse(trained):
    _, log = trained
    for line in ("Solving Bars", "Learning Rate Policy: multistep", "Optimization Done."):
        assert re.search(rf"^I\d{{4}} .*\] {re.escape(line)}$", log, re.M), line
    losses = re.findall(r"\] Iteration (\d+) \(.* iter/s, .*s/\d+ iters\), loss = ([\d.e+-]+)", log)
    assert [int(step) for step, _ in losses] == [0, 5, 10, 15]
    assert re.search(r"\] Iteration 20, loss = [\d.e-]+$", log, re.M)
    rates = re.findall(r"\] Iteration (\d+), lr = ([\d.e+-]+)", log)
    assert rates == [("0", "0.05"), ("5", "0.05"), ("10", "0.025"), ("15", "0.0125")]
    assert re.findall(r"\] (MultiStep Status: .*)", log) == [
        "MultiStep Status: Iteration 8, step = 1",
        "MultiStep Status: Iteration 14, step = 2",
    ]
    assert re.findall(r"\] Iteration (\d+), Testing net \(#0\)", log) == ["0", "10", "20"]
    assert re.search(r"\]     Test net output #0: accuracy = [\d.]+$", log, re.M)
    note = r"\]     Test net output #1: loss = ([\d.e-]+) \(\* 1 = \1 loss\)$"
    assert len(re.findall(note, log, re.M)) == 3
    assert "] Snapshotting to binary proto file bars_iter_10.caffemodel" in log
    assert "] Snapshotting solver state to binary proto file bars_iter_20.solverstate" in log
    assert GLOG.match(log)


def test_the_log_tells_how_the_nets_are_built(trained):
    _, log = trained
    lines = [line.split("] ", 1)[1] for line in log.splitlines() if GLOG.match(line)]
    in_order = [
        "Use CPU.",
        "Initializing solver from parameters: ",
        "Creating training net from net file: net.prototxt",
        "The NetState phase (0) differed from the phase (1) specified by a rule in layer images",
        "Initializing net from parameters: ",
        "Creating Layer images",
        "images -> data",
        "Setting up images",
        "Top shape: 16 1 8 8 (1024)",
        "relu <- conv",
        "relu -> conv (in-place)",
        "    with loss weight 1",
        "Memory required for data: 45892",
        "conv needs backward computation.",
        "images does not need backward computation.",
        "This network produces output loss",
        "Network initialization done.",
        "Creating test net (#0) specified by net file: net.prototxt",
        "Creating Layer label_images_1_split",
        "This network produces output accuracy",
        "Solver scaffolding done.",
        "Starting Optimization",
        "Solving Bars",
        "Learning Rate Policy: multistep",
        "Iteration 0, Testing net (#0)",
    ]
    at = -1
    for line in in_order:
        assert line in lines[at + 1 :], line
        at = lines.index(line, at + 1)


SOLVED = SOLVER.replace("test_iter: 3 test_interval: 10", "").replace("snapshot: 10", "")


def train(folder, out, solver, *flags, **options):
    """Trains with another solver in a folder with databases; snapshots go to `out`."""
    path = out / "solver.prototxt"
    path.write_text(solver.replace('"bars"', f'"{out / "s"}"'))
    return run("train", "-solver", path, *flags, cwd=folder, **options)


def test_options_that_only_tell_more(trained, tmp_path):
    folder, _ = trained
    solver = SOLVER + "test_compute_loss: true debug_info: true clip_gradients: 0.01\n"
    log = train(folder, tmp_path, solver, "-max_iter", 6)
    for loss in re.findall(r"Test net output #1: loss = (\S+)", log):
        assert f"] Test loss: {loss}\n" in log
    clipped = r"\] Gradient clipping: scaling down gradients \(L2 norm \S+ > 0.01\) by scale factor"
    assert len(re.findall(clipped, log)) == 6
    number = r"[\d.e+-]+$"
    for line in (
        rf"\[Forward\] Layer conv, top blob conv data: {number}",
        rf"\[Forward\] Layer conv, param blob 1 data: {number}",
        rf"\[Backward\] Layer ip, bottom blob conv diff: {number}",
        rf"\[Backward\] Layer ip, param blob 0 diff: {number}",
        r"\[Backward\] All net params \(data, diff\): L1 norm = \(.*\); L2 norm = \(.*\)$",
    ):
        assert len(re.findall(r"\]     " + line, log, re.M)) == 2, line  # iterations 0 and 5


def test_a_net_trains_in_bfloat16(trained, tmp_path):
    folder, _ = trained
    weights = {}
    for precision in ("float32", "bf16"):
        out = tmp_path / precision
        out.mkdir()
        log = train(folder, out, SOLVED, "-max_iter", 20, "-precision", precision)
        weights[precision] = next(out.glob("s_iter_20.caffemodel")).read_bytes()
        told = "] Products and activations are bfloat16 (precision: bf16, instruction set "
        assert (told in log) == (precision == "bf16")
        losses = [float(loss) for loss in re.findall(r"\] Iteration \d+ .*, loss = (\S+)", log)]
        assert losses[-1] < losses[0] / 2
    assert weights["bf16"] != weights["float32"]
    assert len(weights["bf16"]) == len(weights["float32"])  # what is stored is float32
    steps = run("explain", folder / "net.prototxt", "--precision", "bf16", cwd=folder)
    assert re.search(r"conv forward .*bfloat16 products", steps)
    wrong = SOLVED + "precision: 'half'"
    log = train(folder, tmp_path, wrong, "-max_iter", 2, code=1)
    assert "precision 'half' is none of float32, bf16x6, bf16, auto and auto_float32" in log


def test_without_a_snapshot_after_training_there_is_none(trained, tmp_path):
    folder, _ = trained
    train(folder, tmp_path, SOLVED + "snapshot_after_train: false", "-max_iter", 2)
    assert not list(tmp_path.glob("*.caffemodel"))


@pytest.mark.parametrize("form", ["BINARYPROTO", "HDF5"])
def test_snapshots_hold_the_last_differences_when_asked(trained, tmp_path, form):
    folder, _ = trained
    sizes = []
    for diff in ("false", "true"):
        solver = SOLVED + f"snapshot_format: {form} snapshot_diff: {diff}"
        train(folder, tmp_path, solver, "-max_iter", 2)
        sizes.append(next(tmp_path.glob("s_iter_2.caffemodel*")).stat().st_size)
    weights = 4 * (6 * 9 + 6 + 4 * 216 + 4)
    assert sizes[1] - sizes[0] >= weights


@pytest.mark.parametrize("sync", ["mode: 'average' period: 5", "compression: 'topk'"])
def test_both_forms_of_a_snapshot_hold_what_the_mode_keeps(trained, tmp_path, sync):
    folder, _ = trained
    solver, models = SOLVED + f"sync {{ {sync} }} ", []
    for form, end in (("BINARYPROTO", ""), ("HDF5", ".h5")):
        out = tmp_path / form
        out.mkdir()
        begin = solver + f"snapshot_format: {form}"
        train(folder, out, begin, "-shards", 2, "-max_iter", 10)
        state = out / f"s_iter_10.solverstate{end}"
        train(folder, out, solver, "-shards", 2, "-snapshot", state)
        models.append((out / "s_iter_20.caffemodel").read_bytes())
    assert models[0] == models[1]


def test_average_loss_smooths_what_is_shown(trained, tmp_path):
    folder, _ = trained

    def losses(more, display):
        solver = SOLVED.replace("display: 5", f"display: {display}") + more
        log = train(folder, tmp_path, solver)
        return {int(i): float(v) for i, v in re.findall(r"Iteration (\d+) .*loss = (\S+)", log)}

    single, smooth = losses("", 1), losses("average_loss: 4", 5)
    assert smooth[0] == single[0]
    assert smooth[10] == pytest.approx(sum(single[i] for i in range(7, 11)) / 4, rel=1e-4)


def test_flag_files_and_log_files(trained, tmp_path):
    folder, _ = trained
    logs = tmp_path / "logs"
    logs.mkdir()
    (tmp_path / "solver.prototxt").write_text(SOLVED.replace('"bars"', f'"{tmp_path / "s"}"'))
    (tmp_path / "flags").write_text(
        f"# a comment\n-solver={tmp_path}/solver.prototxt\n\n--max_iter=1\n"
    )
    flags = ["train", f"-flagfile={tmp_path / 'flags'}"]
    shown = run(*flags, f"-log_dir={logs}", cwd=folder)
    written = (logs / "caffe.INFO").read_text()
    assert written.startswith("Log file created at: ")
    assert written.endswith(shown[shown.index("I") :].split("\n", 1)[1][-200:])
    assert "I" not in {line[:1] for line in run(*flags, "-minloglevel", 1, cwd=folder).split("\n")}
    assert "File not found" in run("train", "-flagfile", "none", cwd=folder, code=2)


def test_resumed_run_ends_with_the_same_bytes(trained, tmp_path):
    folder, whole_log = trained
    make_work(tmp_path, "lmdb")
    run("train", "-solver", "solver.prototxt", "-max_iter", 10, "-threads", 1, cwd=tmp_path)
    state = "--snapshot=bars_iter_10.solverstate"
    log = run("train", "--solver=solver.prototxt", state, cwd=tmp_path)
    assert "] Resuming from bars_iter_10.solverstate" in log
    for kind in ("caffemodel", "solverstate"):
        name = f"bars_iter_20.{kind}"
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()
    last = "Iteration 20, Testing net (#0)"
    results = [re.findall(r"Test net output.*", text.split(last)[1]) for text in (log, whole_log)]
    assert results[0] == results[1] and len(results[0]) == 2


def test_hdf5_snapshots_and_leveldb_resume_to_the_same_bytes(trained, tmp_path):
    folder, _ = trained
    make_work(tmp_path, "leveldb")
    hdf5 = SOLVER + "snapshot_format: HDF5\n"
    (tmp_path / "hdf5.prototxt").write_text(hdf5)
    log = run("train", "-solver", "hdf5.prototxt", "-iterations", 10, cwd=tmp_path)
    assert "] Snapshotting to HDF5 file bars_iter_10.caffemodel.h5" in log
    state = "bars_iter_10.solverstate.h5"
    run("train", "-solver", "solver.prototxt", "-snapshot", state, cwd=tmp_path)
    # Weights and history; a caffemodel holds the net as well, which names the backend.
    name = "bars_iter_20.solverstate"
    assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_training_learns_and_test_agrees_with_it(trained):
    folder, log = trained
    accuracy, loss = re.findall(r"Test net output #\d: \w+ = (\S+)", log)[-2:]
    assert float(accuracy) > 0.9
    scored = run("test", "-model", "net.prototxt", "-weights", "bars_iter_20.caffemodel",
                 "-iterations", 3, cwd=folder)  # fmt: skip
    assert "] Running for 3 iterations." in scored
    assert len(re.findall(r"\] Batch \d, (?:accuracy|loss) = ", scored)) == 6
    assert f"] Loss: {loss}\n" in scored
    assert f"] accuracy = {accuracy}\n" in scored
    assert f"] loss = {loss} (* 1 = {loss} loss)\n" in scored


def test_a_layer_without_weights_is_told(trained):
    folder, _ = trained
    text = (folder / "net.prototxt").read_text()
    named = re.search(r'name: "(\w+)" type: "InnerProduct"', text)[1]
    (folder / "renamed.prototxt").write_text(text.replace(f'name: "{named}"', 'name: "other"'))
    flags = ("-weights", "bars_iter_20.caffemodel", "-iterations", 1)
    told = run("test", "-model", "renamed.prototxt", *flags, cwd=folder)
    assert "there are no weights for layer 'other'" in told and "fillers' values are used" in told
    assert "no weights" not in run("test", "-model", "net.prototxt", *flags, cwd=folder)


def test_weights_start_a_new_run(trained, tmp_path):
    folder, _ = trained
    prefix = tmp_path / "tuned"
    (folder / "tune.prototxt").write_text(SOLVER.replace('"bars"', f'"{prefix}"'))
    weights = "bars_iter_10.caffemodel, bars_iter_20.caffemodel"
    log = run("train", "-solver", "tune.prototxt", "-weights", weights, "-max_iter", 1, cwd=folder)
    assert "] Finetuning from bars_iter_10.caffemodel" in log
    assert "] Finetuning from bars_iter_20.caffemodel" in log
    assert (tmp_path / "tuned_iter_1.caffemodel").exists()


def test_two_test_nets_have_their_own_databases(trained, tmp_path):
    folder, _ = trained
    net = folder / "second.prototxt"
    net.write_text(NET.format(backend="LMDB").replace("batch_size: 10", "batch_size: 15"))
    solver = SOLVER.replace("test_iter: 3", 'test_iter: 2 test_iter: 3 test_net: "second.prototxt"')
    (folder / "two.prototxt").write_text(solver.replace('"bars"', f'"{tmp_path / "two"}"'))
    log = run("train", "-solver", "two.prototxt", "-max_iter", 10, cwd=folder)
    outputs = log.split("Iteration 10, Testing net (#0)")[1]
    first, second = outputs.split("Iteration 10, Testing net (#1)")
    assert "Test net output #1: loss" in first and "Test net output #1: loss" in second


def test_nets_that_are_not_where_the_solver_says_are_found_beside_it(trained, tmp_path):
    folder, _ = trained
    for name in ("learn", "score", "more"):
        (tmp_path / f"{name}.prototxt").write_text(NET.format(backend="LMDB"))
    nets = """train_net: "elsewhere/learn.prototxt"
    test_net: "elsewhere/score.prototxt" test_net: "more.prototxt" test_iter: 1 test_iter: 1"""
    solver = SOLVER.replace('net: "net.prototxt"', nets).replace("test_iter: 3", "")
    log = train(folder, tmp_path, solver, "-max_iter", 1)
    for line in (
        f"Creating training net from train_net file: {tmp_path}/learn.prototxt",
        f"Creating test net (#0) specified by test_net file: {tmp_path}/score.prototxt",
        f"Creating test net (#1) specified by test_net file: {tmp_path}/more.prototxt",
    ):
        assert f"] {line}\n" in log
    shared = SOLVED.replace("net.prototxt", "elsewhere/learn.prototxt")
    assert f"from net file: {tmp_path}/learn.prototxt\n" in train(folder, tmp_path, shared)
    missing = SOLVED.replace("net.prototxt", "elsewhere/none.prototxt")
    failed = train(folder, tmp_path, missing, code=1)
    assert "File not found: elsewhere/none.prototxt" in failed


def test_gpu_wishes_are_answered_once_and_events_are_written(trained, tmp_path):
    folder, _ = trained
    (folder / "gpu.prototxt").write_text(
        SOLVER.replace('"bars"', f'"{tmp_path}"') + "solver_mode: GPU\n"
    )
    events = tmp_path / "events" / "run"
    log = run("-solver", "gpu.prototxt", "-gpu", "all", "-logtostderr=1", "train", "-max_iter", 5,
              "-events", events, cwd=folder)  # fmt: skip
    assert len(re.findall(r"^W.*GPUs are not supported yet", log, re.M)) == 1
    assert events.with_suffix(".jsonl").read_text().count("\n") >= 2
    assert (tmp_path / "gpu_iter_5.caffemodel").exists()  # a prefix that is a folder


@pytest.mark.parametrize("effect", ["stop", "snapshot"])
def test_signals_stop_or_snapshot(trained, tmp_path, effect):
    folder, _ = trained
    solver = SOLVER.replace('"bars"', f'"{tmp_path / "s"}"').replace("snapshot: 10", "snapshot: 0")
    path, log = tmp_path / "solver.prototxt", tmp_path / "log"
    path.write_text(solver.replace("max_iter: 20", "max_iter: 100000000"))
    flags = ["-solver", path, "-sigint_effect", effect, "-sighup_effect", "stop"]
    with log.open("wb") as file:
        process = subprocess.Popen([PROGRAM, "train", *flags], cwd=folder, stderr=file)
    wait_for(lambda: b"lr =" in log.read_bytes())
    process.send_signal(signal.SIGINT)
    if effect == "snapshot":
        wait_for(lambda: list(tmp_path.glob("s_iter_*.solverstate")))
        assert process.poll() is None
        process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=60) == 0
    assert b"Optimization stopped early." in log.read_bytes()
    states = list(tmp_path.glob("s_iter_*.solverstate"))
    assert len(states) == (2 if effect == "snapshot" else 1)


def test_a_signal_interrupts_a_test(trained, tmp_path):
    folder, _ = trained
    path, log = tmp_path / "solver.prototxt", tmp_path / "log"
    path.write_text(
        SOLVER.replace('"bars"', f'"{tmp_path / "s"}"').replace(
            "test_iter: 3", "test_iter: 99999999"
        )
    )
    with log.open("wb") as file:
        process = subprocess.Popen([PROGRAM, "train", "-solver", path], cwd=folder, stderr=file)
    wait_for(lambda: b"Testing net (#0)" in log.read_bytes())
    process.send_signal(signal.SIGHUP)
    wait_for(lambda: (tmp_path / "s_iter_0.solverstate").exists())
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0
    assert b"Test interrupted." in log.read_bytes()
    assert b"Optimization stopped early." in log.read_bytes()


def test_time_tells_each_layer(trained):
    folder, _ = trained
    log = run("time", "-model", "net.prototxt", "-iterations", 3, cwd=folder)
    for layer in ("images", "conv", "relu", "drop", "ip", "loss"):
        assert re.search(rf"\] +{layer}\tforward: [\d.e-]+ ms\.", log), layer
        assert re.search(rf"\] +{layer}\tbackward: [\d.e-]+ ms\.", log), layer
    for line in ("Average Forward pass", "Average Backward pass", "Average Forward-Backward"):
        assert re.search(rf"\] {line}: [\d.e-]+ ms\.$", log, re.M)
    assert len(re.findall(r"\] Iteration: \d forward-backward time: ", log)) == 3


def test_time_shows_steps_beside_the_machine(trained):
    folder, _ = trained
    command = [PROGRAM, "time", "-model", "net.prototxt", "-iterations", "2"]
    table = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    assert re.search(r"^conv forward +\S.* f32 .* (compute|L2|L3|memory)$", table, re.M)
    assert max(map(len, table.splitlines())) <= 100
    switched = [PROGRAM, "-json", *command[1:]]  # a switch may come before the command, too
    printed = subprocess.run(switched, cwd=folder, capture_output=True, check=True)
    timed = json.loads(printed.stdout)
    assert [level["name"] for level in timed["limits"]["levels"]][::2] == ["L2", "memory"]
    steps = {step["step"]: step for step in timed["steps"]}
    assert steps["conv forward"]["layer"] == "conv" and not steps["conv forward"]["backward"]
    assert steps["conv weight gradient"]["backward"]
    explained = run("explain", "net.prototxt", cwd=folder)
    for name, step in steps.items():
        found = re.search(
            rf"^{re.escape(name)}  +\S.* f32 .*?(\d+\.\d\d) +\d+\.\d{{3}}", explained, re.M
        )
        assert found and float(found[1]) == pytest.approx(step["bytes"] / 2**20, abs=0.006), name


@pytest.mark.parametrize("source", [
    'layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 6 '
    "dim: 6 } } }",
    'layer { name: "in" type: "DummyData" top: "data" dummy_data_param { shape { dim: 2 dim: 3 '
    "dim: 6 dim: 6 } } }",
    'layer { name: "in" type: "MemoryData" top: "data" top: "label" memory_data_param { '
    "batch_size: 2 channels: 3 height: 6 width: 6 } }",
])  # fmt: skip
def test_time_feeds_nets_without_a_database(tmp_path, source):
    (tmp_path / "deploy.prototxt").write_text(
        source + 'layer { name: "c" type: "Convolution" bottom: "data" top: "c" '
        "convolution_param { num_output: 4 kernel_size: 3 } }"
        'layer { name: "p" type: "Softmax" bottom: "c" top: "p" }'
    )
    for phase in ("TRAIN", "TEST"):
        log = run("time", "-model", "deploy.prototxt", "-phase", phase, "-iterations", 2,
                  cwd=tmp_path)  # fmt: skip
        assert float(re.search(r"\] +c\tbackward: (\S+) ms", log)[1]) > 0


def test_explain_shows_kernels_and_memory(trained):
    folder, _ = trained
    small = run("explain", "net.prototxt", cwd=folder)
    step = r"^conv forward +\S.* f32 +\d+\.\d +\d+\.\d\d +\d+\.\d{3} +(compute|L2|L3|memory)$"
    assert re.search(step, small, re.M)
    assert max(map(len, small.splitlines())) <= 100
    assert "conv weight gradient" in small and "history" in small
    assert re.search(r"^conv forward .*\n(  +\S.*\n)* +not depthwise: 1 group$", small, re.M)
    large = run("explain", "net.prototxt", "-batch", 64, cwd=folder)

    def total(text):
        return float(re.search(r"^total +([\d.]+)$", text.split("memory predicted")[1], re.M)[1])

    assert total(large) > total(small)
    scored = run("explain", "net.prototxt", "-phase", "TEST", cwd=folder)
    assert "accuracy forward" in scored and "weight gradient" not in scored


def test_explain_takes_a_shape_before_the_net_and_names_a_solver(trained, tmp_path):
    folder, _ = trained
    net = NET.format(backend="LMDB").replace("train_db", "none_db").replace("test_db", "none_db")
    (tmp_path / "net.prototxt").write_text(net)
    text = run("explain", "--shape", "data=1x12x12", "net.prototxt", cwd=tmp_path)
    assert text == run("explain", "net.prototxt", "--shape", "data=1x12x12", cwd=tmp_path)
    text = run("explain", "solver.prototxt", cwd=folder, code=1)
    assert "solver.prototxt is a solver, not a net: use --solver solver.prototxt" in text


def test_explain_predicts_more_ranks(trained):
    folder, _ = trained
    flags = ("-solver", "solver.prototxt", "-ranks", 6, "-link", "1gbe")
    measured = run("explain", *flags, cwd=folder)
    assert "With 6 ranks mode auto takes" in measured
    given = run("explain", *flags, "-seconds", 10, cwd=folder)
    rows = re.findall(r"^ +(\d+) +[\d.]+ +([\d.]+) %", given.split("scale predicted")[1], re.M)
    assert [int(ranks) for ranks, _ in rows] == [1, 2, 4, 6]
    shares = [float(share) for _, share in rows]
    assert shares[0] == 100 and shares == sorted(shares, reverse=True)


@pytest.mark.parametrize(("arguments", "message"), [
    (["tran"], 'did you mean "train"?'),
    (["tr", "-solver", "x"], "Unknown action: tr; the actions are train, test, time, "),
    (["train", "-sovler", "x"], 'train has no flag --sovler; did you mean "--solver"?'),
    (["train"], "train: --solver is required"),
    (["time", "-model", "x", "-phase", "DEPLOY"], "DEPLOY"),
    (["explain", "a", "b"], "explain: "),
    (["time", "-model", "x", "-iterations", "0"], "Value 0 not in range 1 to 1073741824"),
])  # fmt: skip
def test_wrong_usage_is_one_line_that_says_what_is_right(tmp_path, arguments, message):
    text = run(*arguments, cwd=tmp_path, code=2)
    assert message in text and text.count("\n") == 1


@pytest.mark.parametrize(("arguments", "message"), [
    (["-solver", "solver.prototxt", "-snapshot", "x.caffemodel"], "not a solver state"),
    (["-solver", "nowhere.prototxt"], "File not found: nowhere.prototxt"),
    (["-solver", "solver.prototxt", "-snapshot", "a", "-weights", "b"], "but not both"),
    (["-solver", "solver.prototxt", "-weights", "no.caffemodel"], "File not found: no.caffemodel"),
    (["-solver", "solver.prototxt", "-sigint_effect", "die"], 'signal effect "die"'),
    (["-solver", "no_folder.prototxt"], "Cannot write to snapshot prefix 'no/where'"),
    (["-solver", "no_db.prototxt"], "missing_db"),
    (["-solver", "input.prototxt"], "layer 'in' is fed by a program"),
    (["-solver", "no_interval.prototxt"], "test nets need a test_interval above 0"),
    (["-solver", "no_batches.prototxt"], "test_iter must not be negative"),
    (["-solver", "blind.prototxt"], "early_stopping watches the first test net, whose test_iter"),
    (["-solver", "twins.prototxt"], "two layers with weights are named 'conv'"),
    (["-solver", "wide.prototxt", "-weights", "bars_iter_20.caffemodel"],
     "bars_iter_20.caffemodel: Cannot copy param 0 weights from layer 'ip' (rename the layer to "
     "learn it from scratch): shape mismatch: the file has 4 216 (864), the net needs 5 216 "
     "(1080)"),
])  # fmt: skip
def test_failed_training_says_why_and_exits_with_1(trained, arguments, message):
    folder, _ = trained
    (folder / "no_folder.prototxt").write_text(SOLVER.replace('"bars"', '"no/where"'))
    net = NET.format(backend="LMDB").replace("train_db", "missing_db")
    (folder / "no_db_net.prototxt").write_text(net)
    (folder / "no_db.prototxt").write_text(SOLVER.replace("net.proto", "no_db_net.proto"))
    (folder / "input_net.prototxt").write_text('layer { name: "in" type: "Input" top: "x" }')
    (folder / "no_interval.prototxt").write_text(SOLVER.replace("test_interval: 10", ""))
    (folder / "no_batches.prototxt").write_text(SOLVER.replace("test_iter: 3", "test_iter: -1"))
    blind = SOLVER.replace("test_iter: 3", "test_iter: 0") + "early_stopping { patience: 2 }"
    (folder / "blind.prototxt").write_text(blind)
    twins = NET.format(backend="LMDB").replace('name: "ip"', 'name: "conv"')
    (folder / "twins_net.prototxt").write_text(twins)
    (folder / "twins.prototxt").write_text(SOLVER.replace("net.proto", "twins_net.proto"))
    wide = NET.format(backend="LMDB").replace("num_output: 4", "num_output: 5")
    (folder / "wide_net.prototxt").write_text(wide)
    (folder / "wide.prototxt").write_text(SOLVER.replace("net.proto", "wide_net.proto"))
    (folder / "input.prototxt").write_text(SOLVER.replace("net.proto", "input_net.proto"))
    last = run("train", *arguments, cwd=folder, code=1).splitlines()[-1]
    assert last.startswith("cafetiere: ") and message in last


def test_a_test_of_no_batches_is_none(trained, tmp_path):
    folder, _ = trained
    solver = SOLVER.replace("test_iter: 3", "test_iter: 0").replace('"bars"', f'"{tmp_path}/bars"')
    (folder / "untested.prototxt").write_text(solver)
    log = run("train", "-solver", "untested.prototxt", cwd=folder)
    assert "Optimization Done." in log and "Testing net" not in log and "Test net output" not in log


def test_a_log_that_cannot_be_written_does_not_end_a_training(trained, tmp_path):
    folder, _ = trained
    (folder / "mute.prototxt").write_text(SOLVER.replace('"bars"', f'"{tmp_path}/bars"'))
    with open("/dev/full", "w") as full:
        command = [PROGRAM, "train", "-solver", "mute.prototxt", "-max_iter", "5"]
        ended = subprocess.run(command, cwd=folder, stderr=full, timeout=120, check=False)
    assert ended.returncode == 0
    assert (tmp_path / "bars_iter_5.caffemodel").exists()


@pytest.mark.parametrize("arguments", [["version"], ["train", "--help"]])
def test_output_that_cannot_be_written_is_an_error(tmp_path, arguments):
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith("cafetiere: cannot write all of the output")


def test_help_version_and_device_query(tmp_path):
    assert "convert_mnist" in run(cwd=tmp_path)
    assert "--sigint_effect" in run("train", "--help", cwd=tmp_path)
    assert run("--version", cwd=tmp_path).startswith("cafetiere version ")
    assert run("version", cwd=tmp_path) == run("--version", cwd=tmp_path)
    assert run("--version", "train", cwd=tmp_path) == run("--version", cwd=tmp_path)
    assert run("help", cwd=tmp_path) == run("--help", cwd=tmp_path)
    assert run("help", "fit", cwd=tmp_path) == run("fit", "--help", cwd=tmp_path)
    assert "Unknown action: fti; " in run("help", "fti", cwd=tmp_path, code=2)
    query = run("device_query", cwd=tmp_path)
    assert f"Cores:            {_cores.available()}\n" in query
    assert "GPUs:             not supported yet" in query
