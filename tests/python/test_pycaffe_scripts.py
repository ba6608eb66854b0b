# SPDX-License-Identifier: Apache-2.0
"""Scripts as they are written for Caffe, on the alias package: `import caffe`."""

import os
import pathlib
import subprocess
import sys

import pytest
from built import caffe

pytest.importorskip("google.protobuf")
PYTHON = pathlib.Path(caffe.__file__).parents[1]

LEARN = """
import caffe
import numpy as np
from caffe import layers as L, params as P
from caffe.proto import caffe_pb2
import caffe.draw

def logreg(batch_size):
    n = caffe.NetSpec()
    n.data, n.label = L.MemoryData(batch_size=batch_size, channels=1, height=1, width=4, ntop=2)
    n.ip = L.InnerProduct(n.data, num_output=2, weight_filler=dict(type='xavier'))
    n.accuracy = L.Accuracy(n.ip, n.label)
    n.loss = L.SoftmaxWithLoss(n.ip, n.label)
    return n.to_proto()

with open('train.prototxt', 'w') as f:
    f.write(str(logreg(10)))
s = caffe_pb2.SolverParameter()
s.train_net = 'train.prototxt'
s.test_net.append('train.prototxt')
s.test_interval = 100
s.test_iter.append(10)
s.max_iter = 200
s.base_lr = 0.1
s.momentum = 0.9
s.lr_policy = 'step'
s.gamma = 0.5
s.stepsize = 80
s.snapshot_prefix = 'learned'
s.solver_mode = caffe_pb2.SolverParameter.CPU
with open('solver.prototxt', 'w') as f:
    f.write(str(s))

caffe.set_mode_cpu()
caffe.set_random_seed(1)
rng = np.random.RandomState(0)
X = rng.randn(100, 1, 1, 4).astype(np.float32)
y = (X[:, 0, 0, 0] + X[:, 0, 0, 1] > 0).astype(np.float32)
solver = caffe.get_solver('solver.prototxt')
solver.net.set_input_arrays(X, y)
solver.test_nets[0].set_input_arrays(X, y)
losses = []
for it in range(200):
    solver.step(1)
    losses.append(float(solver.net.blobs['loss'].data))
solver.test_nets[0].share_with(solver.net)
accuracy = 0
for _ in range(10):
    solver.test_nets[0].forward()
    accuracy += solver.test_nets[0].blobs['accuracy'].data / 10
solver.net.save('learned.caffemodel')
print('%.2f %.2f' % (accuracy, np.mean(losses[-10:]) / np.mean(losses[:10])))
"""

SURGERY = """
import numpy as np
import caffe

deploy = '''
layer {{ name: "data" type: "Input" top: "data"
  input_param {{ shape {{ dim: 1 dim: 2 dim: {0} dim: {0} }} }} }}
layer {{ name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param {{ num_output: 3 kernel_size: 3
    weight_filler {{ type: "gaussian" std: 0.1 }} }} }}
{1}
'''
fc = '''layer { name: "fc" type: "InnerProduct" bottom: "conv" top: "fc"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }'''
conv = '''layer { name: "fc-conv" type: "Convolution" bottom: "conv" top: "fc-conv"
  convolution_param { num_output: 4 kernel_size: 6 } }'''
for name, side, last in (('fc', 8, fc), ('conv', 12, conv)):
    open(name + '.prototxt', 'w').write(deploy.format(side, last))
net = caffe.Net('fc.prototxt', caffe.TEST)
net.save('fc.caffemodel')
full = caffe.Net('conv.prototxt', 'fc.caffemodel', caffe.TEST)
full.params['fc-conv'][0].data.flat = net.params['fc'][0].data.flat
full.params['fc-conv'][1].data[...] = net.params['fc'][1].data
image = np.random.RandomState(1).randn(1, 2, 12, 12).astype(np.float32)
out = full.forward_all(data=image)['fc-conv']
for y in range(5):
    for x in range(5):
        net.blobs['data'].data[...] = image[:, :, y:y + 8, x:x + 8]
        net.forward()
        np.testing.assert_allclose(out[0, :, y, x], net.blobs['fc'].data[0], rtol=1e-4, atol=1e-5)
print(out.shape)
"""

DREAM = """
import numpy as np
import caffe

open('net.prototxt', 'w').write('''
force_backward: true
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
  pooling_param { kernel_size: 2 stride: 2 } }''')
caffe.set_random_seed(3)
net = caffe.Net('net.prototxt', caffe.TEST)
src, dst = net.blobs['data'], net.blobs['conv']
src.reshape(1, 3, 11, 11)
src.data[:] = np.random.RandomState(0).randn(1, 3, 11, 11)
before = None
for i in range(20):
    net.forward(end='conv')
    energy = (dst.data ** 2).sum()
    before = before or energy
    dst.diff[:] = dst.data
    net.backward(start='conv')
    g = src.diff[0]
    src.data[:] += 0.1 / np.abs(g).mean() * g
print(energy > 2 * before)
"""


def run(script, folder):
    environment = {**os.environ, "PYTHONPATH": f"{PYTHON}:{PYTHON / 'caffe_alias'}"}
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split("\n")[0]


def test_learning_from_arrays(tmp_path):
    accuracy, loss = map(float, run(LEARN, tmp_path).split())
    assert accuracy >= 0.95 and loss < 0.5
    assert (tmp_path / "learned.caffemodel").stat().st_size > 0


def test_the_alias_says_which_caffe_it_is(tmp_path):
    script = "import caffe, caffe.draw, caffe.io as a, cafetiere.io as b; "
    script += "print(caffe.__version__, a is b, caffe.io is a, caffe.Net.__module__)"
    assert run(script, tmp_path) == "1.0.0 True True cafetiere.net"


def test_net_surgery(tmp_path):
    assert run(SURGERY, tmp_path) == "(1, 4, 5, 5)"


def test_gradient_ascent_on_an_image(tmp_path):
    assert run(DREAM, tmp_path) == "True"
