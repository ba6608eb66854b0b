# SPDX-License-Identifier: Apache-2.0
"""train, time and explain for nets with Python layers, which the program `cafetiere` cannot run."""

import pathlib
import time

from cafetiere.net import TEST, TRAIN, Net
from cafetiere.solver import get_solver


def add_commands(commands):
    """Adds the three to argparse's sub-commands."""
    train = commands.add_parser("train", help="trains a net, Python layers included")
    train.add_argument("--solver", required=True, help="the solver's prototxt")
    train.add_argument("--weights", help="A,B,..: weights to begin with")
    train.add_argument("--snapshot", help="a .solverstate to go on from")
    for name, purpose in {
        "time": "times each layer of a net, forward and backward",
        "explain": "shows the layers of a net, their blobs and parameters",
    }.items():
        command = commands.add_parser(name, help=f"{purpose}, Python layers included")
        command.add_argument("--model", required=True, help="the net's prototxt")
        command.add_argument("--weights", help="its weights")
        command.add_argument("--phase", choices=["TRAIN", "TEST"], default="TRAIN")
        if name == "time":
            command.add_argument("--iterations", type=int, default=50)
    return {"train": train_net, "time": time_net, "explain": explain_net}


def train_net(given):
    """Trains as the solver says."""
    if given.snapshot and given.weights:
        raise ValueError("Give a snapshot to resume training or weights to finetune but not both.")
    solver = get_solver(given.solver)
    for path in (given.weights or "").split(","):
        if path:
            solver.net.copy_from(path)
    solver.solve(given.snapshot)


def _open(given):
    path = pathlib.Path(given.model)
    net = Net(str(path), TRAIN if given.phase == "TRAIN" else TEST)
    if given.weights:
        net.copy_from(given.weights)
    return net


def time_net(given):
    """Prints the mean milliseconds of each layer."""
    if given.iterations < 1:
        raise ValueError("--iterations must be at least 1")
    net = _open(given)
    net.forward()
    seconds = {}
    gradients = _can_go_back(net)
    for _ in range(given.iterations):
        for name in net._layer_names:
            seconds["forward", name] = seconds.get(("forward", name), 0) + _seconds(
                lambda name=name: net.forward(start=name, end=name)
            )
        for name in reversed(net._layer_names) if gradients else ():
            seconds["backward", name] = seconds.get(("backward", name), 0) + _seconds(
                lambda name=name: net.backward(start=name, end=name)
            )
    print(f"{'layer':24} {'type':24} {'forward ms':>12} {'backward ms':>12}")
    for name, layer in zip(net._layer_names, net.layers):
        columns = [seconds.get((way, name)) for way in ("forward", "backward")]
        shown = ["-" if s is None else f"{s / given.iterations * 1e3:.3f}" for s in columns]
        print(f"{name:24} {layer.type:24} {shown[0]:>12} {shown[1]:>12}")
    for way in ("forward", "backward") if gradients else ("forward",):
        whole = sum(s for (of, _), s in seconds.items() if of == way)
        print(f"average {way} pass: {whole / given.iterations * 1e3:.3f} ms")


def _can_go_back(net):
    """Whether the net has losses, from which gradients come."""
    try:
        net.backward()
    except RuntimeError:
        return False
    return True


def _seconds(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _shape(blob):
    return "x".join(map(str, blob.data.shape)) or "scalar"


def explain_net(given):
    """Prints each layer with its type, tops and parameters."""
    net = _open(given)
    weights = 0
    for name, layer in zip(net._layer_names, net.layers):
        tops = ", ".join(f"{top} {_shape(net.blobs[top])}" for top in net.top_names[name])
        own = " + ".join(_shape(blob) for blob in layer.blobs)
        weights += sum(blob.data.size for blob in layer.blobs)
        print(f"{name} ({layer.type}): {tops or 'no tops'}{'; parameters ' + own if own else ''}")
    print(f"{len(net.layers)} layers, {weights} parameter values")
