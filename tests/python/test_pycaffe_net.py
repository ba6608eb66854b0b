# SPDX-License-Identifier: Apache-2.0
"""Nets from Python: blobs without copies, parts of a net, weights, Caffe's conventions."""

import gc

import numpy as np
import pytest
from built import aligned, caffe

DUMMY = """
name: "small" force_backward: true
layer {{ name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {{
    shape {{ dim: 5 dim: 2 dim: 3 dim: 4 }} shape {{ dim: 5 dim: 1 dim: 1 dim: 1 }}
    data_filler {{ type: "gaussian" std: 1 }} data_filler {{ type: "constant" }} }} }}
layer {{ name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param {{ num_output: 11 kernel_size: 2 pad: 3
    weight_filler {{ type: "gaussian" std: 1 }} bias_filler {{ type: "constant" value: 2 }} }}
  param {{ decay_mult: 1 }} param {{ decay_mult: 0 }} }}
layer {{ name: "ip" type: "InnerProduct" bottom: "conv" top: "ip_blob"
  inner_product_param {{ num_output: {outputs} weight_filler {{ type: "gaussian" std: 2.5 }}
    bias_filler {{ type: "constant" value: -3 }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip_blob" bottom: "label" top: "loss" }}
"""

DEPLOY = """
name: "deploy" force_backward: true
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 4 dim: 3 dim: 6 dim: 6 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 5 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "drop" type: "Dropout" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
  pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""


@pytest.fixture
def make(tmp_path):
    """Makes a net from text."""

    def of(text, phase=caffe.TEST, **options):
        path = tmp_path / "net.prototxt"
        path.write_text(text)
        caffe.set_random_seed(7)
        return caffe.Net(str(path), phase, **options)

    return of


@pytest.fixture
def net(make):
    """A net with data, weights and a loss."""
    net = make(DUMMY.format(outputs=13), caffe.TRAIN)
    net.blobs["label"].data[...] = np.random.default_rng(3).integers(13, size=(5, 1, 1, 1))
    return net


@pytest.fixture
def deploy(make):
    """A net that is fed from outside."""
    return make(DEPLOY)


def images(count=4):
    return np.random.default_rng(1).standard_normal((count, 3, 6, 6)).astype(np.float32)


def test_summary(make):
    summary = make(DEPLOY).summary()
    assert repr(summary) == str(summary), "a notebook would show its line ends as \\n"
    lines = summary.splitlines()
    assert lines[0].split() == ["layer", "type", "tops", "parameters"]
    assert "conv (4, 5, 4, 4)" in lines[2] and "140 (5x3x3x3 5)" in lines[2]
    assert lines[3].split() == ["relu", "ReLU", "conv", "(4,", "5,", "4,", "4)"]
    # 5 x 3 x 3 x 3 + 5 of the convolution, 3 x 20 + 3 of the inner product
    assert lines[-1].startswith("203 parameters, 0.0 MiB")


def test_structure(net):
    assert list(net.blobs) == ["data", "label", "conv", "ip_blob", "loss"]
    assert list(net.params) == ["conv", "ip"]
    assert [layer.type for layer in net.layers] == [
        "DummyData",
        "Convolution",
        "InnerProduct",
        "SoftmaxWithLoss",
    ]
    assert net.layer_dict["conv"].blobs[0].shape == (11, 2, 2, 2)
    assert net.inputs == [] and net.outputs == ["loss"]
    assert net.top_names["data"] == ["data", "label"]
    assert net.bottom_names["loss"] == ["ip_blob", "label"]
    assert net.blob_loss_weights["loss"] == 1 and net.blob_loss_weights["conv"] == 0
    blob = net.blobs["conv"]
    assert (blob.num, blob.channels, blob.height, blob.width) == (5, 11, 8, 9)
    assert blob.count == blob.data.size and net.blobs["loss"].data.shape == ()


def test_blobs_are_views(deploy):
    blob = deploy.blobs["data"]
    blob.data[...] = 2.5
    assert (deploy.blobs["data"].data == 2.5).all()
    assert blob.data is deploy.blobs["data"].data
    assert blob.data.dtype == np.float32 and blob.data.flags.c_contiguous
    blob.diff[1] = 3
    assert deploy.blobs["data"].diff.sum() == 3 * 3 * 6 * 6


def test_arrays_outlive_the_net(make):
    net = make(DEPLOY)
    arrays = [net.params["conv"][0].data, net.blobs["conv"].data, net.blobs["data"].diff]
    sums = [float(array.sum()) for array in arrays]
    del net
    gc.collect()
    for array, before in aligned(arrays, sums):
        assert float(array.sum()) == before
        array[...] = 1


def test_forward_and_backward(net):
    out = net.forward()
    assert set(out) == {"loss"} and np.isfinite(out["loss"])
    net.backward()
    assert np.abs(net.params["conv"][0].diff).sum() > 0


def test_gradients_are_those_of_the_function(deploy):
    deploy.blobs["data"].data[...] = images()
    deploy.forward()
    weights = deploy.params["ip"][0]
    top = np.random.default_rng(5).standard_normal((4, 3)).astype(np.float32)
    deploy.backward(prob=top)
    slope = weights.diff[1, 2].copy()
    step = 1e-2
    values = []
    for sign in (1, -1):
        weights.data[1, 2] += sign * step
        values.append(float((deploy.forward()["prob"] * top).sum()))
        weights.data[1, 2] -= sign * step
    assert slope == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-2, abs=1e-4)


def test_parameter_gradients_add_up_until_cleared(net):
    net.forward()
    net.backward()
    once = net.params["ip"][0].diff.copy()
    net.backward()
    np.testing.assert_allclose(net.params["ip"][0].diff, 2 * once, rtol=1e-5)
    net.clear_param_diffs()
    assert not net.params["ip"][0].diff.any()


def test_loss_diff_scales_the_gradient(net):
    net.forward()
    assert net.blobs["loss"].diff == 1
    net.backward()
    once = net.blobs["ip_blob"].diff.copy()
    net.blobs["loss"].diff[...] = 0.5
    net.backward()
    np.testing.assert_allclose(net.blobs["ip_blob"].diff, once / 2, rtol=1e-6)


def test_parts_of_a_net(deploy):
    whole = {k: v.copy() for k, v in deploy.forward(data=images(), blobs=["conv", "pool"]).items()}
    assert set(whole) == {"prob", "conv", "pool"}
    part = deploy.forward(end="pool")
    assert set(part) == {"pool"}
    np.testing.assert_array_equal(part["pool"], whole["pool"])
    deploy.blobs["ip"].data[...] = 0
    assert np.allclose(deploy.forward(start="prob")["prob"], 1 / 3)
    deploy.blobs["pool"].data[...] = whole["pool"]
    np.testing.assert_allclose(deploy.forward(start="ip")["prob"], whole["prob"], rtol=1e-6)
    assert set(deploy.backward(end="pool")) == {"conv"}
    assert set(deploy.backward(start="conv", diffs=["conv"])) == {"data", "conv"}
    with pytest.raises(ValueError, match="no layer 'nothing'"):
        deploy.forward(end="nothing")


def test_writes_to_a_split_blob_are_seen_behind_it(make):
    net = make("""
      layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
      layer { name: "relu" type: "ReLU" bottom: "x" top: "a" }
      layer { name: "twice" type: "Scale" bottom: "x" top: "b"
              scale_param { filler { type: "constant" value: 2 } } }
    """)
    assert list(net.blobs) == ["x", "x_in_0_split_0", "x_in_0_split_1", "a", "b"]
    net.forward(x=np.array([[1, 2]], np.float32))
    net.blobs["x"].data[...] = 5
    assert (net.forward(start="relu")["b"] == 10).all()


def test_inputs_are_checked(deploy):
    with pytest.raises(Exception, match="do not match net inputs"):
        deploy.forward(other=images())
    with pytest.raises(Exception, match="not batch sized"):
        deploy.forward(data=images(3))
    with pytest.raises(Exception, match="do not match net outputs"):
        deploy.backward(other=images())


def test_many_rows_in_batches(deploy):
    rows = images(10)
    all_at_once = deploy.forward_all(data=rows)["prob"]
    assert all_at_once.shape == (10, 3)
    first = deploy.forward(data=rows[:4])["prob"]
    np.testing.assert_allclose(all_at_once[:4], first, rtol=1e-6)
    blobs, diffs = deploy.forward_backward_all(
        data=rows, prob=np.ones((10, 3), np.float32), blobs=["ip"]
    )
    assert blobs["ip"].shape == (10, 3) and diffs["data"].shape == (10, 3, 6, 6)


def test_another_batch_and_image_size(make):
    net = make(DEPLOY[: DEPLOY.index('layer { name: "ip"')])
    old = net.blobs["data"].data
    net.blobs["data"].reshape(2, 3, 12, 10)
    assert net.blobs["conv"].shape == (4, 5, 4, 4)
    net.reshape()
    assert net.blobs["conv"].shape == (2, 5, 10, 8)
    net.blobs["data"].reshape(1, 3, 8, 8)
    assert net.forward()["pool"].shape == (1, 5, 3, 3)
    old[...] = 1  # memory of its own by now


def test_a_shape_that_the_weights_do_not_fit_is_refused(deploy):
    deploy.blobs["data"].reshape(4, 3, 9, 9)
    with pytest.raises(caffe.Error, match="layer 'ip': .*parameter 0"):
        deploy.reshape()


def test_save_and_load(net, make, tmp_path):
    for path, save in (("w.caffemodel", net.save), ("w.caffemodel.h5", net.save_hdf5)):
        path = str(tmp_path / path)
        save(path)
        other = make(DUMMY.format(outputs=13), caffe.TRAIN)
        for blobs in other.params.values():
            for blob in blobs:
                blob.data[...] = 0
        other.copy_from(path)
        for name, blobs in net.params.items():
            for mine, theirs in aligned(blobs, other.params[name]):
                np.testing.assert_array_equal(mine.data, theirs.data)
    loaded = make(DUMMY.format(outputs=13), caffe.TRAIN, weights=path)
    np.testing.assert_array_equal(loaded.params["ip"][0].data, net.params["ip"][0].data)
    legacy = caffe.Net(str(tmp_path / "net.prototxt"), path, caffe.TRAIN)
    np.testing.assert_array_equal(legacy.params["ip"][0].data, net.params["ip"][0].data)
    with pytest.raises(caffe.Error, match="Cannot copy param 0 weights from layer 'ip'"):
        make(DUMMY.format(outputs=14), caffe.TRAIN, weights=path)


def test_share_with(net, make):
    other = make(DUMMY.format(outputs=13), caffe.TRAIN)
    other.share_with(net)
    net.params["ip"][0].data[0, 0] = 77
    assert other.params["ip"][0].data[0, 0] == 77
    del net
    gc.collect()
    other.forward()
    with pytest.raises(caffe.Error, match="shape"):
        make(DUMMY.format(outputs=14), caffe.TRAIN).share_with(other)


def test_memory_data(make):
    net = make("""
      layer { name: "data" type: "MemoryData" top: "data" top: "label"
              memory_data_param { batch_size: 2 channels: 1 height: 2 width: 3 } }
      layer { name: "twice" type: "Scale" bottom: "data" top: "out"
              scale_param { filler { type: "constant" value: 2 } } }
    """)
    with pytest.raises(RuntimeError, match="layer 'data' of type MemoryData has no data: call"):
        net.forward()
    data = np.arange(24, dtype=np.float32).reshape(4, 1, 2, 3)
    net.set_input_arrays(data, np.arange(4, dtype=np.float32))
    for first in (0, 2, 0):
        out = net.forward(blobs=["label"])
        np.testing.assert_array_equal(out["out"], 2 * data[first : first + 2])
        np.testing.assert_array_equal(out["label"], [first, first + 1])
    with pytest.raises(ValueError, match="float32"):
        net.set_input_arrays(data.astype(float), np.arange(4, dtype=np.float32))
    with pytest.raises(caffe.Error, match="not a multiple of its batch_size 2"):
        net.set_input_arrays(data[:3], np.arange(3, dtype=np.float32))


def test_memory_data_may_be_written_into_its_blobs(make):
    net = make("""
      layer { name: "data" type: "MemoryData" top: "data" top: "label"
              memory_data_param { batch_size: 1 channels: 1 height: 1 width: 2 } }
    """)
    net.blobs["data"].data[...] = 3
    assert (net.forward(blobs=["data"])["data"] == 3).all()


def test_sizes_and_rows_that_are_none(deploy):
    with pytest.raises(TypeError, match=r"whole numbers, and 1\.9 is none"):
        deploy.blobs["data"].reshape(1.9, 3, 6, 6)
    deploy.blobs["data"].reshape(2.0, np.int64(3), 6, 6)
    assert deploy.blobs["data"].shape == (2, 3, 6, 6)
    with pytest.raises(ValueError, match="data has no rows"):
        deploy.forward_all(data=images(0))
    with pytest.raises(ValueError, match="there are no arrays"):
        deploy.forward_all()


def test_hooks_run_around_each_layer(deploy):
    seen = []
    deploy.before_forward(lambda i: seen.append(("before", i)))
    deploy.after_backward(lambda i: seen.append(("after", i)))
    deploy.forward(end="relu")
    deploy.backward(start="relu", end="conv")
    assert seen == [("before", 0), ("before", 1), ("before", 2), ("after", 2), ("after", 1)]


def test_stages_and_levels(make):
    text = """
      layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 } } }
      layer { name: "a" type: "ReLU" bottom: "x" top: "a" include { stage: "A" } }
      layer { name: "b" type: "ReLU" bottom: "x" top: "b" include { min_level: 2 } }
      layer { name: "c" type: "ReLU" bottom: "x" top: "c" include { phase: TRAIN } }
    """
    assert make(text).outputs == ["x"]
    assert make(text, stages=["A"]).outputs == ["a"]
    assert make(text, level=3).outputs == ["b"]
    assert make(text, caffe.TRAIN, level=2, stages=["A"]).outputs == ["a", "b", "c"]


def test_training_uses_batch_statistics_at_once(make):
    net = make(
        """
      layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 8 dim: 2 } } }
      layer { name: "norm" type: "BatchNorm" bottom: "x" top: "y" }
    """,
        caffe.TRAIN,
    )
    x = np.random.default_rng(0).standard_normal((8, 2)).astype(np.float32) + 3
    net.forward(x=x)
    mean, _, weight = (blob.data.copy() for blob in net.params["norm"])
    np.testing.assert_allclose(mean, x.mean(0), rtol=1e-5)
    assert weight == 1
    net.forward(x=x)
    assert net.params["norm"][2].data == pytest.approx(1.999)


def test_refusals_carry_the_engines_text(make, tmp_path):
    with pytest.raises(RuntimeError, match="Could not open file"):
        caffe.Net(str(tmp_path / "none.prototxt"), caffe.TEST)
    with pytest.raises(caffe.Error, match="net.prototxt:1"):
        make('layer { name: "x" type: "Nothing" }')


def test_seeds(make):
    one, same = make(DEPLOY), make(DEPLOY)
    caffe.set_random_seed(8)
    path = one.params["conv"][0].data
    np.testing.assert_array_equal(path, same.params["conv"][0].data)


def test_process_settings():
    caffe.set_mode_cpu()
    with pytest.warns(UserWarning, match="no GPU"):
        caffe.set_mode_gpu()
    caffe.set_device(0)
    assert not caffe.has_nccl() and caffe.solver_count() == 1 and caffe.solver_rank() == 0
    with pytest.raises(RuntimeError, match="no GPU support"):
        caffe.NCCL.new_uid()
    names = caffe.layer_type_list()
    assert {"Convolution", "Python", "InnerProduct"} <= set(names) and names == sorted(names)
