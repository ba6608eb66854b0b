# SPDX-License-Identifier: Apache-2.0
"""Layers written in Python."""

import subprocess
import sys

import numpy as np
import pytest
from built import caffe

pytest.importorskip("google.protobuf")


class Tenfold(caffe.Layer):
    """Multiplies by ten, or by what param_str says."""

    def setup(self, bottom, top):
        self.factor = float(self.param_str or 10)

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = self.factor * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        assert propagate_down == [True]
        bottom[0].diff[...] = self.factor * top[0].diff


class Failing(caffe.Layer):
    """Fails where param_str says."""

    def setup(self, bottom, top):
        self.fail("setup")

    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        self.fail("forward")

    def fail(self, where):
        if self.param_str == where:
            raise KeyError(f"wrong in {where}")


class Weighted(caffe.Layer):
    """Gives its parameter."""

    def setup(self, bottom, top):
        self.blobs.add_blob(1)
        self.blobs[0].data[0] = 4

    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        top[0].data[...] = self.blobs[0].data

    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[0] += 3


class Phase(caffe.Layer):
    """Gives the phase."""

    def reshape(self, bottom, top):
        top[0].reshape()

    def forward(self, bottom, top):
        top[0].data[()] = self.phase


class Rows(caffe.Layer):
    """Gives one row more at each forward."""

    count = 0

    def reshape(self, bottom, top):
        self.count += 1
        top[0].reshape(self.count, 2)

    def forward(self, bottom, top):
        top[0].data[...] = self.count


class Euclidean(caffe.Layer):
    """Half the mean squared difference, as a loss."""

    def reshape(self, bottom, top):
        self.difference = np.zeros(bottom[0].shape, np.float32)
        top[0].reshape(1)

    def forward(self, bottom, top):
        self.difference[...] = bottom[0].data - bottom[1].data
        top[0].data[0] = (self.difference**2).sum() / bottom[0].num / 2

    def backward(self, top, propagate_down, bottom):
        for i, sign in ((0, 1), (1, -1)):
            if propagate_down[i]:
                bottom[i].diff[...] = sign * top[0].diff[0] * self.difference / bottom[i].num


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes a net whose Python layers are found in this module."""
    monkeypatch.setitem(sys.modules, "my_layers", sys.modules[__name__])

    def of(text, phase=caffe.TEST):
        path = tmp_path / "net.prototxt"
        path.write_text(text)
        return caffe.Net(str(path), phase)

    return of


def python(name, wires, kind, param_str="", more=""):
    return (
        f'layer {{ name: "{name}" type: "Python" {wires} {more} '
        f'python_param {{ module: "my_layers" layer: "{kind}" param_str: "{param_str}" }} }}\n'
    )


def chain(*factors):
    text = 'force_backward: true layer { name: "in" type: "Input" top: "x0" '
    text += "input_param { shape { dim: 10 dim: 9 dim: 8 } } }\n"
    for i, factor in enumerate(factors):
        text += python(f"p{i}", f'bottom: "x{i}" top: "x{i + 1}"', "Tenfold", factor)
    return text


def test_forward_and_backward(make):
    net = make(chain("", "", "2.5"))
    net.blobs["x0"].data[...] = 8
    assert (net.forward()["x3"] == 8 * 10 * 10 * 2.5).all()
    net.blobs["x3"].diff[...] = 7
    net.backward()
    assert (net.blobs["x0"].diff == 7 * 250).all()
    assert isinstance(net.layers[1], Tenfold) and net.layers[1].type == "Python"


def test_reshape_follows_the_input(make):
    net = make(chain("3"))
    net.blobs["x0"].reshape(4, 5)
    assert net.forward()["x1"].shape == (4, 5)


def test_exceptions_become_errors(make):
    for where in ("setup", "forward"):
        with pytest.raises(caffe.Error, match=f"layer 'bad': .*wrong in {where}") as caught:
            make(python("bad", 'top: "y"', "Failing", where)).forward()
        assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(caffe.Error, match="no class 'Missing'"):
        make(python("bad", 'top: "y"', "Missing"))
    with pytest.raises(caffe.Error, match="No module named"):
        make(python("bad", 'top: "y"', "Missing").replace("my_layers", "no_such_module"))


def test_parameters(make, tmp_path):
    net = make(python("w", 'top: "y"', "Weighted", more="loss_weight: 1"), caffe.TRAIN)
    assert net.params["w"][0].data[0] == 4 and net.forward()["y"] == 4
    net.backward()
    net.backward()
    assert net.params["w"][0].diff[0] == 6
    net.params["w"][0].data[0] = 9
    assert net.forward()["y"] == 9
    net.save(str(tmp_path / "w.caffemodel"))
    again = make(python("w", 'top: "y"', "Weighted"), caffe.TRAIN)
    again.copy_from(str(tmp_path / "w.caffemodel"))
    assert again.forward()["y"] == 9


def test_phase(make):
    for phase in (caffe.TRAIN, caffe.TEST):
        assert make(python("phase", 'top: "y"', "Phase"), phase).forward()["y"] == phase


def test_tops_that_change_from_pass_to_pass(make):
    net = make(
        python("rows", 'top: "x"', "Rows")
        + """
      layer { name: "twice" type: "Scale" bottom: "x" top: "y"
              scale_param { filler { type: "constant" value: 2 } } }"""
    )
    shapes = [net.forward()["y"].shape[0] for _ in range(3)]
    assert shapes[1] == shapes[0] + 1 and shapes[2] == shapes[1] + 1
    assert (net.blobs["y"].data == 2 * shapes[2]).all()


def test_a_loss_trains(make, tmp_path):
    net = tmp_path / "train.prototxt"
    net.write_text(
        """
      layer { name: "data" type: "DummyData" top: "x" top: "t"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 }
          data_filler { type: "constant" value: 1 } data_filler { type: "constant" value: 2 } } }
      layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
    """
        + python("loss", 'bottom: "y" bottom: "t" top: "loss"', "Euclidean", "", "loss_weight: 1")
    )
    solver_file = tmp_path / "solver.prototxt"
    solver_file.write_text(
        f'net: "{net}" base_lr: 0.1 lr_policy: "fixed" max_iter: 50 snapshot_after_train: false'
    )
    make(python("unused", 'top: "y"', "Phase"))  # puts my_layers in its place
    solver = caffe.SGDSolver(str(solver_file))
    solver.step(1)
    first = float(solver.net.blobs["loss"].data[0])
    solver.solve()
    assert solver.net.blobs["loss"].data[0] < first / 100


# Blobs so large that freed memory goes back to the system, where reading it ends the process.
KEEPER = """
import sys
import types
import numpy as np
import cafetiere as caffe

class Keeper(caffe.Layer):
    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = bottom[0].data
        kept.extend((bottom[0].data, top[0].data, bottom[0].diff))

kept = []
sys.modules["keeper"] = types.ModuleType("keeper")
sys.modules["keeper"].Keeper = Keeper
net = caffe.Net(sys.argv[1], caffe.TRAIN)
net.blobs["data"].data[...] = 7
net.forward()
net.blobs["data"].reshape(4, 1_000_000)
net.forward()
del net
assert [float(array.sum()) for array in kept[:2]] == [7e6, 7e6], kept
assert not kept[2].any()
print("kept")
"""


def test_arrays_that_a_layer_keeps_stay_valid(work):
    path = work / "net.prototxt"
    path.write_text(
        'layer { name: "in" type: "Input" top: "data"\n'
        "  input_param { shape { dim: 1 dim: 1000000 } } }\n"
        'layer { name: "keeper" type: "Python" bottom: "data" top: "out"\n'
        '  python_param { module: "keeper" layer: "Keeper" } }\n'
    )
    run = subprocess.run(
        [sys.executable, "-c", KEEPER, str(path)], capture_output=True, text=True, check=False
    )
    assert run.stdout == "kept\n", (run.returncode, run.stderr)
