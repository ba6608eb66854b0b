# SPDX-License-Identifier: Apache-2.0
"""Solvers from Python."""

import gc
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from built import aligned, caffe

from cafetiere.parse_log import parse_log
from cafetiere.proto import caffe_pb2

NET = """
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 8 dim: 6 } shape { dim: 8 }
    data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
SOLVER = """
net: "{net}" test_iter: 3 test_interval: 10 base_lr: 0.05 momentum: {momentum} lr_policy: "{policy}"
gamma: 0.001 power: 0.75 weight_decay: 0.001 max_iter: 40 display: 10 random_seed: 5
snapshot_prefix: "{prefix}" {more}
"""


@pytest.fixture
def write(tmp_path):
    """Writes a solver and gives its path."""

    def of(more="", momentum=0.9, policy="inv"):
        (tmp_path / "net.prototxt").write_text(NET)
        path = tmp_path / "solver.prototxt"
        path.write_text(
            SOLVER.format(
                net=tmp_path / "net.prototxt",
                prefix=tmp_path / "model",
                more=more,
                momentum=momentum,
                policy=policy,
            )
        )
        return str(path)

    return of


def weights(net):
    return [blob.data.copy() for blobs in net.params.values() for blob in blobs]


def test_what_is_printed(write):
    solver = caffe.SGDSolver(write())
    net = "<Net '': 3 layers, 4 blobs, 21 parameters>"
    assert repr(solver.net) == net
    assert repr(solver) == f"<SGDSolver of {net} at iteration 0>"
    assert repr(solver.net.blobs["data"]) == "<Blob of shape (8, 6)>"


def test_solve(write):
    solver = caffe.get_solver(write())
    assert isinstance(solver, caffe.SGDSolver) and solver.iter == 0
    solver.step(1)
    first = float(solver.net.blobs["loss"].data)
    assert solver.iter == 1 and solver.lr == pytest.approx(0.05)
    solver.solve()
    assert solver.iter == 40 and float(solver.net.blobs["loss"].data) < first / 2
    assert solver.param.max_iter == 40 and solver.param.display == 10
    assert solver.lr == pytest.approx(0.05 * (1 + 0.001 * 39) ** -0.75)
    assert len(solver.test_nets) == 1
    assert solver.test_nets[0].forward()["accuracy"] == 1


def test_test_nets_use_the_weights(write):
    solver = caffe.SGDSolver(write())
    solver.step(2)
    for mine, theirs in aligned(weights(solver.net), weights(solver.test_nets[0])):
        np.testing.assert_array_equal(mine, theirs)


def test_a_step_is_what_it_says(write):
    """One update by hand."""
    solver = caffe.SGDSolver(write())
    before = weights(solver.net)
    solver.net.forward()
    solver.net.backward()
    gradients = [b.diff.copy() for bs in solver.net.params.values() for b in bs]
    solver.apply_update()
    for w, g, after in aligned(before, gradients, weights(solver.net)):
        np.testing.assert_allclose(after, w - 0.05 * (g + 0.001 * w), rtol=1e-5, atol=1e-7)


def test_steps_by_hand_are_those_of_step(write):
    """Rates and Adam's corrections go on with them."""
    path = write("momentum2: 0.99 stepsize: 2", policy="step")
    whole, by_hand = caffe.AdamSolver(path), caffe.AdamSolver(path)
    whole.step(6)
    for _ in range(6):
        by_hand.net.clear_param_diffs()
        by_hand.net.forward()
        by_hand.net.backward()
        by_hand.apply_update()
    assert by_hand.iter == whole.iter == 6
    for one, other in aligned(weights(by_hand.net), weights(whole.net)):
        np.testing.assert_array_equal(one, other)


def test_base_lr_can_be_set(write):
    solver = caffe.SGDSolver(write())
    solver.param.base_lr = 0
    before = weights(solver.net)
    solver.step(2)
    for one, other in aligned(before, weights(solver.net)):
        np.testing.assert_array_equal(one, other)


def test_resume_is_the_same_as_going_on(write, tmp_path):
    for form, end in (("BINARYPROTO", ""), ("HDF5", ".h5")):
        path = write(f"snapshot: 20 snapshot_format: {form}")
        whole = caffe.SGDSolver(path)
        whole.step(30)
        state = tmp_path / f"model_iter_20.solverstate{end}"
        assert state.exists() and (tmp_path / f"model_iter_20.caffemodel{end}").exists()
        resumed = caffe.SGDSolver(path)
        resumed.net.forward()  # random numbers are those of the iteration, whatever came before
        resumed.restore(str(state))
        assert resumed.iter == 20
        resumed.step(10)
        for one, other in aligned(weights(whole.net), weights(resumed.net)):
            np.testing.assert_array_equal(one, other)


def test_snapshot_and_solve_from_it(write, tmp_path):
    solver = caffe.SGDSolver(write())
    solver.step(5)
    solver.snapshot()
    again = caffe.SGDSolver(write())
    again.solve(str(tmp_path / "model_iter_5.solverstate"))
    assert again.iter == 40 and (tmp_path / "model_iter_40.caffemodel").exists()


def test_a_snapshot_holds_the_last_update_when_asked(write, tmp_path):
    solver = caffe.SGDSolver(write("snapshot_diff: true"))
    solver.step(2)
    before = weights(solver.net)
    solver.step(1)
    solver.snapshot()
    model = caffe_pb2.NetParameter()
    model.ParseFromString((tmp_path / "model_iter_3.caffemodel").read_bytes())
    kept = [np.array(blob.diff) for layer in model.layer for blob in layer.blobs]
    for old, new, diff in aligned(before, weights(solver.net), kept):
        np.testing.assert_array_equal((old - new).ravel(), diff)


def test_fine_tuning(write, tmp_path):
    first = caffe.SGDSolver(write())
    first.step(3)
    first.snapshot()
    second = caffe.SGDSolver(write(f'weights: "{tmp_path}/model_iter_3.caffemodel, "'))
    for one, other in aligned(weights(first.net), weights(second.net)):
        np.testing.assert_array_equal(one, other)


def test_callbacks(write):
    solver = caffe.SGDSolver(write())
    seen = []
    solver.add_callback(
        lambda: seen.append("start"),
        lambda: seen.append(float(np.abs(solver.net.params["ip"][0].diff).sum()) > 0),
    )
    solver.step(2)
    assert seen == ["start", True, "start", True]

    def fail():
        raise ZeroDivisionError("enough")

    solver.add_callback(fail, lambda: None)
    with pytest.raises(caffe.Error, match="enough") as caught:
        solver.step(1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_key_press_passes_through(write):
    solver = caffe.SGDSolver(write())

    def press():
        raise KeyboardInterrupt

    solver.add_callback(press, lambda: None)
    with pytest.raises(KeyboardInterrupt):
        solver.step(1)


# Where the tests run in the background of a script, SIGINT comes ignored.
INTERRUPTED = """
import signal
import sys
import cafetiere as caffe
signal.signal(signal.SIGINT, signal.default_int_handler)
solver = caffe.SGDSolver(sys.argv[1])
for i in range(int(sys.argv[3])):
    try:
        print("runs", flush=True)
        solver.step(10**9) if sys.argv[2] == "step" else solver.solve()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize("method", ["step", "solve"])
def test_every_interrupt_ends_the_run(write, method):
    path = write()
    text = pathlib.Path(path).read_text()
    for key in ("max_iter", "test_interval", "display"):
        text = re.sub(f"{key}: [0-9]+", f"{key}: 1000000000", text)
    pathlib.Path(path).write_text(text)
    times = 20
    command = [sys.executable, "-c", INTERRUPTED, path, method, str(times)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        watchdog = threading.Timer(30, child.kill)
        watchdog.start()
        delays = random.Random(1)
        for _ in range(times):
            assert child.stdout.readline() == "runs\n"
            time.sleep(delays.uniform(0, 0.03))  # any moment will do
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "interrupted\n"
        watchdog.cancel()
    assert child.returncode == 0


@pytest.fixture
def interruptible():
    """SIGINT's handler is Python's own."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_handlers_of_signals_are_those_of_before(write, interruptible):
    solver = caffe.SGDSolver(write())
    inside = []
    solver.add_callback(lambda: inside.append(signal.getsignal(signal.SIGINT)), lambda: None)
    solver.step(1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert inside[0] is not signal.default_int_handler

    solver.add_callback(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN), lambda: None)
    solver.step(1)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_nets_outlive_their_solver(write):
    solver = caffe.SGDSolver(write())
    nets = [solver.net, *solver.test_nets]
    del solver
    gc.collect()
    for net in nets:
        net.forward()


def test_share_weights(write, tmp_path):
    solver = caffe.SGDSolver(write())
    net = caffe.Net(str(tmp_path / "net.prototxt"), caffe.TEST)
    solver.share_weights(net)
    solver.step(3)
    np.testing.assert_array_equal(net.params["ip"][0].data, solver.net.params["ip"][0].data)
    with pytest.raises(caffe.Error, match="keeps its own weights"):
        solver.net.share_with(net)


@pytest.mark.parametrize("kind", ["SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"])
def test_every_type(write, kind):
    path = write(momentum=0 if kind in ("AdaGrad", "RMSProp") else 0.9)
    solver = getattr(caffe, kind + "Solver")(path)
    assert solver.type == kind
    before = weights(solver.net)
    solver.step(3)
    assert all((a != b).any() for a, b in aligned(before, weights(solver.net)))


def test_messages(write, caplog):
    caffe.init_log(0, False)
    with caplog.at_level("INFO", "cafetiere"):
        caffe.SGDSolver(write()).step(11)
    text = caplog.text
    assert "Iteration 10, Testing net (#0)" in text and "Iteration 10, lr = " in text
    assert "    Test net output #0: accuracy = " in text
    assert "    Train net output #0: loss = " in text and "(* 1 = " in text


def test_a_script_leaves_a_log_that_tools_read(write, tmp_path):
    more = "average_loss: 2 clip_gradients: 0.001 stepvalue: 20"
    script = (
        f"import cafetiere as caffe; caffe.SGDSolver({write(more, policy='multistep')!r}).solve()"
    )
    log = tmp_path / "log"
    with log.open("w") as stderr:
        folders = [str(pathlib.Path(caffe.__file__).parents[1]), *sys.path]
        path = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
        subprocess.run([sys.executable, "-c", script], stderr=stderr, env=path, check=True)
    text = log.read_text()
    for line in (
        "Learning Rate Policy: multistep",
        r"Iteration 10 \(.* iter/s, .*s/10 iters\), loss = ",
        "Gradient clipping: scaling down gradients",
        "MultiStep Status: Iteration 20, step = 1",
        "Iteration 40, loss = ",
        "Optimization Done.",
    ):
        assert re.search(rf"^I\d{{4}} [\d:.]+ +\d+ cafetiere:0\] {line}", text, re.M), line
    rows = parse_log(log)
    assert [row["NumIters"] for row in rows.train] == [0, 10, 20, 30]
    assert [row["NumIters"] for row in rows.test] == [0, 10, 20, 30, 40]
    assert rows.train[2]["LearningRate"] == pytest.approx(5e-5)


def test_a_net_is_found_beside_its_solver(write, tmp_path):
    path = pathlib.Path(write())
    text = path.read_text().replace(str(tmp_path), "elsewhere")
    path.write_text(text.replace("net:", "train_net:") + 'test_net: "elsewhere/net.prototxt"')
    solver = caffe.SGDSolver(str(path))
    assert len(solver.test_nets) == 1


def test_refusals(write, tmp_path):
    with pytest.raises(RuntimeError, match="Could not open file"):
        caffe.SGDSolver(str(tmp_path / "none"))
    with pytest.raises(caffe.Error, match="learning rate policy"):
        caffe.SGDSolver(write(policy="never"))


def test_a_step_is_a_whole_number(write):
    solver = caffe.SGDSolver(write())
    with pytest.raises(TypeError, match=r"a whole number, and 1\.5 is none"):
        solver.step(1.5)
    with pytest.raises(ValueError, match="-3 is negative"):
        solver.step(-3)
    solver.step(np.int64(1))
    assert solver.iter == 1
