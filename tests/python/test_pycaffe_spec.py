# SPDX-License-Identifier: Apache-2.0
"""NetSpec, coord_map and draw."""

import copy

import pytest
from built import caffe

from cafetiere import coord_map, draw
from cafetiere import layers as L
from cafetiere import params as P

pytest.importorskip("google.protobuf")


def lenet(batch=8):
    n = caffe.NetSpec()
    n.data, n.label = L.DummyData(
        shape=[dict(dim=[batch, 1, 28, 28]), dict(dim=[batch, 1, 1, 1])],
        transform_param=dict(scale=1.0 / 255),
        ntop=2,
    )
    xavier = dict(type="xavier")
    n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=20, weight_filler=xavier)
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.ip1 = L.InnerProduct(n.pool1, num_output=50, weight_filler=xavier)
    n.relu1 = L.ReLU(n.ip1, in_place=True)
    n.ip2 = L.InnerProduct(
        n.relu1, num_output=10, weight_filler=xavier, param=[dict(lr_mult=1), dict(lr_mult=2)]
    )
    n.loss = L.SoftmaxWithLoss(n.ip2, n.label)
    return n


def load(proto, tmp_path, phase=caffe.TRAIN):
    path = tmp_path / "net.prototxt"
    path.write_text(str(proto))
    return caffe.Net(str(path), phase)


def test_a_net_written_in_python_loads(tmp_path):
    proto = lenet().to_proto()
    conv, pool = proto.layer[1], proto.layer[2]
    assert list(conv.convolution_param.kernel_size) == [5]
    assert conv.convolution_param.weight_filler.type == "xavier"
    assert pool.pooling_param.pool == P.Pooling.MAX == 0
    assert [spec.lr_mult for spec in proto.layer[5].param] == [1, 2]
    relu = proto.layer[4]
    assert relu.name == "relu1" and list(relu.top) == list(relu.bottom) == ["ip1"]
    net = load(proto, tmp_path)
    assert [layer.type for layer in net.layers] == [layer.type for layer in proto.layer]
    net.forward()


def test_automatic_names():
    data = L.Input(input_param=dict(shape=dict(dim=[1, 2])))
    one, two = L.InnerProduct(data, num_output=1), L.InnerProduct(data, num_output=2)
    left, right = L.Slice(data, ntop=2)
    proto = caffe.to_proto(one, two, left, right)
    assert [layer.name for layer in proto.layer] == [
        "Input1",
        "InnerProduct1",
        "InnerProduct2",
        "Slice1",
    ]
    assert list(proto.layer[3].top) == ["Slice1", "Slice2"]
    assert one.to_proto().layer[1].bottom == ["Input1"]


def test_layers_without_tops(tmp_path):
    n = caffe.NetSpec()
    n.data, n.extra = L.DummyData(shape=dict(dim=[1, 2]), ntop=2)
    n.silence = L.Silence(n.data, n.extra, ntop=0)
    proto = n.to_proto()
    assert proto.layer[1].name == "silence" and not proto.layer[1].top
    assert load(proto, tmp_path).outputs == []


def test_fields_of_the_layer_itself():
    data = L.Input()
    top = L.ReLU(
        data, name="mine", loss_weight=[0.5], include=dict(phase=caffe.TEST), negative_slope=0.1
    )
    layer = top.to_proto().layer[1]
    assert layer.name == "mine" and list(layer.loss_weight) == [0.5]
    assert layer.include[0].phase == caffe.TEST
    assert layer.relu_param.negative_slope == pytest.approx(0.1)
    with pytest.raises(AttributeError, match="no field 'wrong'"):
        L.ReLU(data, wrong=1).to_proto()


def test_an_input_that_is_not_a_top():
    tops = L.DummyData(ntop=2, dummy_data_param=dict(shape=dict(dim=[1])))
    text = r"^Silence input 0 is not a Top \(type is <class 'tuple'>\)$"
    with pytest.raises(TypeError, match=text):
        L.Silence(tops, ntop=0)  # and not *tops
    with pytest.raises(TypeError, match=r"^ReLU input 0 is not a Top \(type is <class 'str'>\)$"):
        L.ReLU("data")


def test_specs_work_as_mappings():
    n = lenet()
    assert n["conv1"] is n.conv1 and "loss" in n.keys()  # noqa: SIM118
    other = caffe.NetSpec()
    other.update(n)
    assert list(other.keys()) == list(n.keys())
    del other["loss"]
    with pytest.raises(AttributeError):
        _ = other.loss
    assert copy.copy(n).conv1 is n.conv1


def start():
    return L.Input(input_param=dict(shape=dict(dim=[1, 1, 100, 100])))


def offset(top, data):
    proto = coord_map.crop(data, top).to_proto()
    return list(proto.layer[-1].crop_param.offset), proto.layer[-1].crop_param.axis


def test_padding_moves_the_origin():
    data = start()
    conv = L.Convolution(data, kernel_size=3, num_output=1)
    assert coord_map.coord_map_from_to(conv, data)[2] == 1
    padded = L.Convolution(data, kernel_size=3, num_output=1, pad=1)
    assert coord_map.coord_map_from_to(padded, data)[2] == 0
    assert offset(conv, data) == ([1], 2)


def test_down_and_up_again():
    data = start()
    pool = L.Pooling(L.Convolution(data, kernel_size=3, num_output=1), kernel_size=2, stride=2)
    up = L.Deconvolution(L.ReLU(pool), convolution_param=dict(kernel_size=2, stride=2))
    axis, a, b = coord_map.coord_map_from_to(up, data)
    assert (axis, a, b) == (1, 1, 1)


def test_several_axes():
    data = start()
    conv = L.Convolution(data, kernel_size=[3, 5], pad=[0, 1], num_output=1)
    assert offset(conv, data) == ([1, 1], 2)


def test_crops_of_crops():
    data = start()
    inner = coord_map.crop(data, L.Convolution(data, kernel_size=5, num_output=1))
    assert offset(L.Convolution(inner, kernel_size=3, num_output=1), data) == ([3], 2)


def test_what_cannot_be_mapped():
    data, other = start(), start()
    with pytest.raises(RuntimeError, match="no spatial layers"):
        coord_map.coord_map_from_to(L.InnerProduct(data, num_output=1), data)
    with pytest.raises(RuntimeError):
        coord_map.coord_map_from_to(L.ReLU(other), data)
    with pytest.raises(coord_map.AxisMismatchException):
        coord_map.compose((1, 1, 0), (2, 1, 0))
    with pytest.raises(coord_map.UndefinedMapException):
        coord_map.coord_map(L.InnerProduct(data, num_output=1).fn)


def test_what_cannot_be_cropped():
    data = start()
    with pytest.raises(AssertionError, match="outside"):
        coord_map.crop(L.Convolution(data, kernel_size=3, num_output=1), data)
    with pytest.raises(AssertionError, match="between pixels"):
        coord_map.crop(data, L.Convolution(data, kernel_size=2, num_output=1))
    with pytest.raises(AssertionError, match="scale"):
        coord_map.crop(data, L.Pooling(data, kernel_size=2, stride=2))


def test_draw(tmp_path):
    proto = lenet().to_proto()
    text = draw.draw_net(proto, "LR", "dot").decode()
    assert '"conv1_Convolution"' in text and '"conv1_blob"' in text and "kernel size: 5" in text
    assert '"data_blob" -> "conv1_Convolution"' in text and "MAX Pooling" in text
    net, drawing = tmp_path / "net.prototxt", tmp_path / "net.dot"
    net.write_text(str(proto))
    draw.main([str(net), str(drawing), "--rankdir", "TB", "--display_lrm"])
    assert "rankdir=TB" in drawing.read_text() and "lr mult: 1" in drawing.read_text()


def test_a_drawing_that_fails_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    drawing = tmp_path / "net.svg"
    with pytest.raises(RuntimeError, match="install graphviz"):
        draw.draw_net_to_file(draw.caffe_pb2.NetParameter(), str(drawing))
    assert not drawing.exists()


def test_draw_a_phase():
    from cafetiere.proto import caffe_pb2

    net = caffe_pb2.NetParameter()
    for phase in (caffe.TRAIN, caffe.TEST):
        net.layer.add(name=f"in{phase}", type="Input", top=["x"]).include.add(phase=phase)
    assert "in1" not in draw.draw_net(net, "LR", "dot", phase=caffe.TRAIN).decode()
    assert "in1" in draw.draw_net(net, "LR", "dot").decode()
