# SPDX-License-Identifier: Apache-2.0
"""Losses with weights of rows against their definitions in NumPy, values and gradients."""

import numpy as np
import pytest
from built import caffe

ROWS, WIDTH, QUANTILES = 7, 3, (0.1, 0.5, 0.8)


def softmax(x, label):
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    share = shifted / shifted.sum(axis=1, keepdims=True)
    hit = np.arange(WIDTH) == label[:, :1]
    return -np.log(share[hit]), share - hit


def sigmoid(x, label):
    target, share = label % 2, 1 / (1 + np.exp(-x))
    loss = -(target * np.log(share) + (1 - target) * np.log(1 - share))
    return loss.sum(axis=1), share - target


def squared(x, label):
    return ((x - label) ** 2).sum(axis=1) / 2, x - label


def huber(x, label, delta=0.7):
    size = np.abs(x - label)
    loss = np.where(size <= delta, size**2 / 2, delta * (size - delta / 2))
    return loss.sum(axis=1), np.clip(x - label, -delta, delta)


def pinball(x, label):
    lack = label[:, :1] - x
    loss = np.maximum(np.array(QUANTILES) * lack, (np.array(QUANTILES) - 1) * lack)
    return loss.sum(axis=1), np.where(lack > 0, -np.array(QUANTILES), 1 - np.array(QUANTILES))


LOSSES = {
    "SoftmaxWithLoss": (softmax, (ROWS,), ""),
    "SigmoidCrossEntropyLoss": (sigmoid, (ROWS, WIDTH), ""),
    "EuclideanLoss": (squared, (ROWS, WIDTH), ""),
    "HuberLoss": (huber, (ROWS, WIDTH), "huber_loss_param { delta: 0.7 }"),
    "QuantileLoss": (
        pinball,
        (ROWS, 1),
        "quantile_loss_param {" + "".join(f" quantile: {share}" for share in QUANTILES) + " }",
    ),
}


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_loss_is_its_definition(kind, weighted, tmp_path):
    formula, labels, fields = LOSSES[kind]
    tops = {"x": (ROWS, WIDTH), "label": labels, **({"weight": (ROWS,)} if weighted else {})}
    net = ""
    for top, shape in tops.items():
        dims = " ".join(f"dim: {size}" for size in shape)
        net += f'layer {{ name: "{top}" type: "Input" top: "{top}"'
        net += f" input_param {{ shape {{ {dims} }} }} }}\n"
    bottoms = " ".join(f'bottom: "{top}"' for top in tops)
    down = "propagate_down: true" + " propagate_down: false" * (len(tops) - 1)
    net += f'layer {{ name: "loss" type: "{kind}" {bottoms} top: "loss" loss_weight: 1'
    net += f" {down} {fields} }}\n"
    path = tmp_path / "net.prototxt"
    path.write_text(net)
    made = caffe.Net(str(path), caffe.TRAIN)
    random = np.random.default_rng(5)
    x = random.normal(size=(ROWS, WIDTH))
    label = random.integers(0, WIDTH, (ROWS, WIDTH)).astype(float)
    weight = random.uniform(0, 3, ROWS) if weighted else np.ones(ROWS)
    made.blobs["x"].data[...] = x
    made.blobs["label"].data[...] = (
        (label % 2 if kind.startswith("Sigmoid") else label)
        .reshape(ROWS, -1)[:, : int(np.prod(labels)) // ROWS]
        .reshape(labels)
    )
    if weighted:
        made.blobs["weight"].data[...] = weight
    made.forward()
    made.backward()
    losses, slopes = formula(x.astype(np.float32).astype(float), label)
    assert made.blobs["loss"].data == pytest.approx((weight * losses).sum() / ROWS, rel=1e-5)
    expected = weight[:, None] * slopes / ROWS
    np.testing.assert_allclose(made.blobs["x"].diff, expected, rtol=1e-5, atol=1e-7)
