# SPDX-License-Identifier: Apache-2.0
"""`explain` and `time` of nets as they are published: their databases and lists are elsewhere."""

import re

import pytest
from program import needs_the_program, run

pytestmark = needs_the_program

# The ends of CaffeNet's train_val.prototxt.
TRAIN_VAL = """
name: "CaffeNet"
layer {
  name: "data" type: "Data" top: "data" top: "label"
  include { phase: TRAIN }
  transform_param {
    mirror: true crop_size: 227 mean_file: "data/ilsvrc12/imagenet_mean.binaryproto" %s
  }
  data_param { source: "examples/imagenet/ilsvrc12_train_lmdb" batch_size: 4 backend: LMDB }
}
layer {
  name: "data" type: "Data" top: "data" top: "label"
  include { phase: TEST }
  transform_param { crop_size: 227 mean_file: "data/ilsvrc12/imagenet_mean.binaryproto" %s }
  data_param { source: "examples/imagenet/ilsvrc12_val_lmdb" batch_size: 2 backend: LMDB }
}
layer {
  name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 96 kernel_size: 11 stride: 4 }
}
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer {
  name: "fc8" type: "InnerProduct" bottom: "conv1" top: "fc8"
  inner_product_param { num_output: 10 }
}
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc8" bottom: "label" top: "loss" }
"""
SOLVER = """
net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 1 test_iter: 1 test_interval: 1
snapshot_after_train: false
"""
IMAGES = """
layer {
  name: "data" type: "%s" top: "data" top: "label"
  %s
}
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 } }
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "net.prototxt").write_text(TRAIN_VAL % ("", ""))
    (tmp_path / "solver.prototxt").write_text(SOLVER)
    return tmp_path


def explain(folder, text, *flags, code=0):
    (folder / "other.prototxt").write_text(text)
    return run("explain", "other.prototxt", *flags, cwd=folder, code=code)


def test_a_shape_stands_for_the_database(folder):
    for given, rows in (("data=3x227x227", 4), ("data=7x3x227x227", 7)):
        text = run("explain", "net.prototxt", "--shape", given, cwd=folder)
        assert f"in   data {rows} 3 227 227" in text and f"in   label {rows} " in text
        assert re.search(r"^conv1 +Convolution +\d+ 96 55 55 .* 34,944 ", text, re.M)
        assert "note: layer 'data' is not read: --shape stands for its files" in text
    text = run("explain", "-solver", "solver.prototxt", "-shape=data=3x227x227", cwd=folder)
    assert re.search(r"^test nets +[\d.]+$", text, re.M)


def test_without_a_shape_the_error_gives_the_flag(folder):
    text = run("explain", "net.prototxt", cwd=folder, code=1)
    assert "examples/imagenet/ilsvrc12_train_lmdb" in text
    assert "--shape data=3x227x227 (channels x height x width)" in text


def test_what_the_net_says_of_its_images_is_enough(folder):
    colours = "mean_value: 104 mean_value: 117 mean_value: 123"
    text = explain(folder, TRAIN_VAL % (colours, colours))
    assert "in   data 4 3 227 227" in text and "is not read: " in text
    files = 'image_data_param { source: "list.txt" batch_size: 5 new_height: 8 new_width: 9 %s }'
    assert "in   data 5 3 8 9" in explain(folder, IMAGES % ("ImageData", files % ""))
    assert "in   data 5 1 8 9" in explain(folder, IMAGES % ("ImageData", files % "is_color: false"))
    windows = 'transform_param { crop_size: 6 } window_data_param { source: "w" batch_size: 5 }'
    assert "in   data 5 3 6 6" in explain(folder, IMAGES % ("WindowData", windows))


def test_tables_need_all_axes(folder):
    net = IMAGES % ("HDF5Data", 'hdf5_data_param { source: "list.txt" batch_size: 5 }')
    assert "--shape data=" in explain(folder, net, code=1)
    flags = ("--shape", "data=5x8", "--shape", "label=5")
    assert "in   data 5 8 " in explain(folder, net, *flags)
    flags = ("--shape", "data=5x8", "--shape", "label=6")
    assert "make them equal" in explain(folder, net, *flags, code=1)


def test_time_runs_on_random_numbers(folder):
    flags = ("-model", "net.prototxt", "-iterations", 1, "-threads", 1)
    log = run("time", *flags, "-shape", "data=3x67x67", cwd=folder)
    assert float(re.search(r"\] +conv1\tbackward: (\S+) ms", log)[1]) > 0


@pytest.mark.parametrize(("shape", "message"), [
    ("data", "--shape 'data': expected TOP=SIZES, such as data=3x227x227"),
    ("data=3x", "such as data=3x227x227"),
    ("data=3x0x4", "such as data=3x227x227"),
    ("image=3x2x2", "those tops are: data, label"),
])  # fmt: skip
def test_wrong_shapes(folder, shape, message):
    assert message in run("explain", "net.prototxt", "--shape", shape, cwd=folder, code=1)
