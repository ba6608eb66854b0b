# SPDX-License-Identifier: Apache-2.0
"""Whole nets of forks beside NumPy in double precision, written from papers and formulas."""

import dialect_nets as nets
import numpy as np
import pytest
from built import aligned, caffe

pytest.importorskip("google.protobuf")


def opened(proto, tmp_path):
    """The net with random weights that keep its values apart and of about one size."""
    path = tmp_path / "net.prototxt"
    path.write_text(str(proto))
    net = caffe.Net(str(path), caffe.TEST)
    rng = np.random.default_rng(7)
    for layer, (name, blobs) in aligned(proto_layers(proto, net), net.params.items()):
        for i, blob in enumerate(blobs):
            blob.data[...] = first_values(rng, layer, i, blob.data.shape)
        assert name == layer.name
    net.blobs["data"].data[...] = rng.normal(0, 1, net.blobs["data"].data.shape)
    return net


def proto_layers(proto, net):
    by_name = {layer.name: layer for layer in proto.layer}
    return [by_name[name] for name in net.params]


def first_values(rng, layer, blob, shape):
    if layer.type == "BatchNorm":
        return [rng.normal(0, 0.1, shape), rng.uniform(0.5, 1.5, shape), np.ones(shape)][blob]
    if layer.type == "Scale":
        return rng.uniform(0.5, 1, shape) if blob == 0 else rng.normal(0, 0.1, shape)
    fan_in = int(np.prod(shape[1:])) or 1
    return rng.normal(0, (1.5 / fan_in) ** 0.5, shape) if blob == 0 else rng.normal(0, 0.1, shape)


class Numpy:
    """Layers as functions, with the weights of a net."""

    def __init__(self, net):
        self.of = {name: [blob.data.astype(np.float64) for blob in blobs]
                   for name, blobs in net.params.items()}  # fmt: skip

    def conv(self, name, x, stride=1, pad=0):
        weights, *bias = self.of[name]
        kernel = weights.shape[2]
        x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        windows = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axis=(2, 3))
        windows = windows[:, :, ::stride, ::stride]
        if weights.shape[1] == 1 and x.shape[1] > 1:
            y = np.einsum("nchwij,cij->nchw", windows, weights[:, 0])
        else:
            y = np.tensordot(windows, weights, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)
        return y + bias[0][:, None, None] if bias else y

    def norm(self, name, x, relu=True):
        mean, variance, weight = self.of[f"{name}/bn"]
        scale, shift = self.of[f"{name}/scale"]
        column = (slice(None), None, None)
        x = (x - (mean / weight)[column]) / np.sqrt((variance / weight)[column] + 1e-5)
        y = x * scale[column] + shift[column]
        return np.maximum(y, 0) if relu else y


def pooled(x, how, kernel, stride, pad=0, ceil=True):
    """Caffe's windows: the last one may reach beyond the end but begins in the image."""
    steps = (x.shape[2] + 2 * pad - kernel) / stride
    size = int(np.ceil(steps) if ceil else np.floor(steps)) + 1
    if pad and (size - 1) * stride >= x.shape[2] + pad:
        size -= 1
    y = np.empty((*x.shape[:2], size, size))
    for row in range(size):
        for column in range(size):
            begin = (row * stride - pad, column * stride - pad)
            part = x[
                :, :, max(begin[0], 0) : begin[0] + kernel, max(begin[1], 0) : begin[1] + kernel
            ]
            y[:, :, row, column] = getattr(part, how)(axis=(2, 3))
    return y


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def assert_near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


def test_se_resnet_50(tmp_path):
    net = opened(nets.se_resnet_50(64, classes=10), tmp_path)
    net.forward()
    f = Numpy(net)
    data = net.blobs["data"].data.astype(np.float64)
    x = pooled(f.norm("conv1", f.conv("conv1", data, 2, 3)), "max", 3, 2)
    for stage, (_, blocks) in enumerate(nets.SE_STAGES, 2):
        for block in range(blocks):
            name, stride = f"conv{stage}_{block + 1}", 2 if block == 0 and stage > 2 else 1
            y = f.norm(f"{name}_reduce", f.conv(f"{name}_reduce", x, stride))
            y = f.norm(f"{name}_3x3", f.conv(f"{name}_3x3", y, 1, 1))
            y = f.norm(f"{name}_up", f.conv(f"{name}_up", y), relu=False)
            z = np.maximum(f.conv(f"{name}_down", y.mean(axis=(2, 3), keepdims=True)), 0)
            z = 1 / (1 + np.exp(-f.conv(f"{name}_excite", z)))
            if block == 0:
                x = f.norm(f"{name}_proj", f.conv(f"{name}_proj", x, stride), relu=False)
            x = np.maximum(z * y + x, 0)
    weights, bias = f.of["classifier"]
    expected = x.mean(axis=(2, 3)) @ weights.T + bias
    assert_near(net.blobs["classifier"].data, expected)
    assert_near(net.blobs["prob"].data, softmax(expected, 1))


def test_densenet_121(tmp_path):
    net = opened(nets.densenet_121(64, classes=10), tmp_path)
    net.forward()
    f = Numpy(net)
    data = net.blobs["data"].data.astype(np.float64)
    x = pooled(f.norm("conv1", f.conv("conv1", data, 2, 3)), "max", 3, 2, 1, ceil=False)
    for block, layers in enumerate(nets.DENSE_BLOCKS, 2):
        for layer in range(layers):
            name = f"conv{block}_{layer + 1}"
            y = f.conv(f"{name}/x1", f.norm(f"{name}/x1", x))
            y = f.conv(f"{name}/x2", f.norm(f"{name}/x2", y), 1, 1)
            x = np.concatenate([x, y], axis=1)
        x = f.norm(f"conv{block}_blk", x)
        if block - 1 < len(nets.DENSE_BLOCKS):
            x = pooled(f.conv(f"conv{block}_blk", x), "mean", 2, 2)
    expected = f.conv("fc", x.mean(axis=(2, 3), keepdims=True))
    assert_near(net.blobs["fc"].data, expected)


def priors(maps, side):
    """Boxes of each map, row by row: the square, that between it and the next, the ratios."""
    boxes = []
    for size, (_, least, most, ratios) in aligned(maps, nets.MAPS):
        sides = [(least, least)] + ([((least * most) ** 0.5,) * 2] if most else [])
        for ratio in ratios:
            for r in (ratio, 1 / ratio):
                sides.append((least * r**0.5, least / r**0.5))
        for row in range(size):
            for column in range(size):
                x, y = (column + 0.5) / size, (row + 0.5) / size
                for w, h in sides:
                    boxes.append([x - w / side / 2, y - h / side / 2,
                                  x + w / side / 2, y + h / side / 2])  # fmt: skip
    return np.array(boxes)


def decoded(numbers, boxes):
    numbers = numbers.reshape(-1, 4) * nets.VARIANCES
    center, size = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    center, size = numbers[:, :2] * size + center, np.exp(numbers[:, 2:]) * size
    return np.concatenate([center - size / 2, center + size / 2], axis=1)


def overlap(a, b):
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    common = np.prod(np.maximum(high - low, 0))
    return common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


def detected(boxes, scores):
    """Rows of image, label, score and box, as DetectionOutput gives them."""
    given, rows = nets.DETECTION, []
    for label in range(1, nets.CLASSES):
        places = np.flatnonzero(scores[:, label] > given["confidence_threshold"])
        places = places[np.argsort(-scores[places, label], kind="stable")]
        kept = []
        for place in places[: given["nms_param"]["top_k"]]:
            if all(
                overlap(boxes[place], boxes[k]) <= given["nms_param"]["nms_threshold"] for k in kept
            ):
                kept.append(place)
        rows += [[0, label, scores[k, label], *boxes[k]] for k in kept]
    rows = np.array(rows)
    best = np.argsort(-rows[:, 2], kind="stable")[: given["keep_top_k"]]
    return rows[np.sort(best)]


def test_mobilenet_ssd(tmp_path):
    side = 96
    net = opened(nets.mobilenet_ssd(side), tmp_path)
    net.forward()
    f = Numpy(net)

    def plain(name, x, stride=1, pad=0):
        return np.maximum(f.conv(name, x, stride, pad), 0)

    x = plain("conv0", net.blobs["data"].data.astype(np.float64), 2, 1)
    made = {}
    for i, (_, stride) in enumerate(nets.PAIRS, 1):
        x = made[f"conv{i}"] = plain(f"conv{i}", plain(f"conv{i}/dw", x, stride, 1))
    for i in range(14, 18):
        x = made[f"conv{i}_2"] = plain(f"conv{i}_2", plain(f"conv{i}_1", x), 2, 1)
    heads = {
        head: np.concatenate(
            [
                f.conv(f"{name}_{head}", made[name]).transpose(0, 2, 3, 1).ravel()
                for name, *_ in nets.MAPS
            ]
        )  # fmt: skip
        for head in ("loc", "conf")
    }
    boxes = priors([made[name].shape[2] for name, *_ in nets.MAPS], side)
    assert_near(net.blobs["loc"].data.ravel(), heads["loc"])
    assert_near(net.blobs["prior"].data[0, 0].reshape(-1, 4), boxes)
    scores = softmax(heads["conf"].reshape(-1, nets.CLASSES), 1)
    expected = detected(decoded(heads["loc"], boxes), scores)
    assert len(expected) > 5, "the weights find too little to compare"
    found = net.blobs["detections"].data[0, 0]
    assert found.shape == expected.shape
    assert_near(found, expected)
