# SPDX-License-Identifier: Apache-2.0
"""Solvers, driven step by step from Python."""

import ctypes
import json
import operator

from cafetiere._host import Host
from cafetiere._library import Handle, call, call_for_json
from cafetiere._settings import next_seed, settings
from cafetiere.net import Net, readable


class SolverParam:
    """What a script may ask of a solver's settings; base_lr may be set."""

    def __init__(self, handle):
        self._handle = handle

    def _get(self, key):
        return call_for_json("cft_solver_describe", self._handle)[key]

    @property
    def max_iter(self):
        """The iteration that solve() ends at."""
        return self._get("max_iter")

    @property
    def display(self):
        """Iterations between messages."""
        return self._get("display")

    @property
    def layer_wise_reduce(self):
        """Caffe's default; it has no effect here."""
        return True

    @property
    def base_lr(self):
        """The rate that lr_policy starts from."""
        return self._get("base_lr")

    @base_lr.setter
    def base_lr(self, rate):
        call("cft_solver_set_base_lr", self._handle, rate)


class Solver:
    """A solver read from a prototxt, of the type that the class is for.

    `net` and `test_nets` lie open between steps: their blobs and parameters can be read and
    written. Test nets use the training net's weights.
    """

    _type = ""

    def __init__(self, solver_file):
        callbacks = self._callbacks = []
        self._host = Host(
            on_start=lambda: [on_start() for on_start, _ in callbacks],
            on_gradients_ready=lambda: [ready() for _, ready in callbacks],
        )
        options = {
            "path": readable(solver_file),
            "type": self._type,
            "threads": settings.threads,
            "seed": next_seed(),
        }
        pointer = ctypes.c_void_p()
        self._host.call(
            "cft_solver_create",
            json.dumps(options).encode(),
            ctypes.byref(self._host.struct),
            ctypes.byref(pointer),
        )
        self._handle = Handle(pointer, "cft_solver_destroy", self._host)
        described = call_for_json("cft_solver_describe", self._handle)
        self.type = described["type"]
        self.param = SolverParam(self._handle)
        self.net = self._open_net(-1)
        self.test_nets = [self._open_net(i) for i in range(described["test_nets"])]

    def _open_net(self, number):
        pointer = ctypes.c_void_p()
        call("cft_solver_net", self._handle, number, ctypes.byref(pointer))
        return Net._of_solver(Handle(pointer, owner=self._handle), self._host)

    def __repr__(self):
        """Its type, net and iteration."""
        return f"<{type(self).__name__} of {self.net!r} at iteration {self.iter}>"

    @property
    def iter(self):
        """Iterations done."""
        return call_for_json("cft_solver_describe", self._handle)["iter"]

    @property
    def lr(self):
        """The learning rate of the last update."""
        return call_for_json("cft_solver_describe", self._handle)["lr"]

    def step(self, iterations):
        """Does so many iterations: tests, passes, updates and snapshots where they are due."""
        try:
            count = operator.index(iterations)
        except TypeError:
            raise TypeError(f"step() takes a whole number, and {iterations!r} is none") from None
        if count < 0:
            raise ValueError(f"step() takes a number of iterations, and {count} is negative")
        self._host.call("cft_solver_step", self._handle, count)

    def solve(self, resume_file=None):
        """Trains to max_iter, from the .solverstate `resume_file` if one is given."""
        if resume_file:
            self.restore(resume_file)
        self._host.call("cft_solver_solve", self._handle)

    def restore(self, state_file):
        """Goes on from a .solverstate and the weights that it names."""
        self._host.call("cft_solver_restore", self._handle, readable(state_file).encode())

    def snapshot(self):
        """Writes weights and state where snapshot_prefix says."""
        self._host.call("cft_solver_snapshot", self._handle)

    def apply_update(self):
        """Updates the weights by the gradients that are in the net, which ends an iteration."""
        self._host.call("cft_solver_apply_update", self._handle)

    def share_weights(self, net):
        """Makes `net` use the training net's weights."""
        net.share_with(self.net)

    def add_callback(self, on_start, on_gradients_ready):
        """Calls on_start() before each iteration and on_gradients_ready() before each update."""
        self._callbacks.append((on_start, on_gradients_ready))


class SGDSolver(Solver):
    """Stochastic gradient descent with momentum."""

    _type = "SGD"


class NesterovSolver(Solver):
    """Nesterov's accelerated gradient."""

    _type = "Nesterov"


class AdaGradSolver(Solver):
    """AdaGrad."""

    _type = "AdaGrad"


class RMSPropSolver(Solver):
    """RMSProp."""

    _type = "RMSProp"


class AdaDeltaSolver(Solver):
    """AdaDelta."""

    _type = "AdaDelta"


class AdamSolver(Solver):
    """Adam."""

    _type = "Adam"


class AdamWSolver(Solver):
    """Adam with decoupled weight decay."""

    _type = "AdamW"


class LAMBSolver(Solver):
    """LAMB, for large batches."""

    _type = "LAMB"


_BY_TYPE = {kind._type: kind for kind in Solver.__subclasses__()}


def get_solver(solver_file):
    """The solver of the type that the file names."""
    solver = Solver(solver_file)
    solver.__class__ = _BY_TYPE.get(solver.type, Solver)
    return solver
