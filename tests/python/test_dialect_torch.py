# SPDX-License-Identifier: Apache-2.0
"""Layers of forks beside PyTorch, where it has the same functions. Skipped where it is not."""

import sys

import numpy as np
import pytest
from built import caffe
from program import ROOT

sys.path += map(str, ROOT.glob("build/peers/lib/python3.*/site-packages"))
torch = pytest.importorskip("torch")
functional = torch.nn.functional


def run(tmp_path, layers, **inputs):
    """The blobs of a net whose inputs hold these arrays."""
    text = "".join(
        f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ dim: '
        f"{list(array.shape)} }} }} }}\n"
        for name, array in inputs.items()
    )
    path = tmp_path / "net.prototxt"
    path.write_text(text + layers)
    net = caffe.Net(str(path), caffe.TEST)
    for name, array in inputs.items():
        net.blobs[name].data[...] = array
    net.forward()
    return {name: blob.data.copy() for name, blob in net.blobs.items()}


def values(*shape, seed=1):
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def assert_near(found, expected):
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)


def one(kind, fields=""):
    return f'layer {{ name: "L" type: "{kind}" bottom: "x" top: "y" {fields} }}'


@pytest.mark.parametrize("sigma", [1, 3])
def test_smooth_l1_loss(tmp_path, sigma):
    p, t = values(5, 4, 3, 2), values(5, 4, 3, 2, seed=2)
    found = run(
        tmp_path,
        'layer { name: "L" type: "SmoothL1Loss" bottom: "p" bottom: "t" top: "y"'
        f" smooth_l1_loss_param {{ sigma: {sigma} }} }}",
        p=p,
        t=t,
    )
    beta = 1 / sigma**2
    whole = functional.smooth_l1_loss(torch.tensor(p), torch.tensor(t), reduction="sum", beta=beta)
    assert_near(found["y"], whole / 5)


def test_shuffle_channel(tmp_path):
    x = values(2, 12, 3, 4)
    found = run(tmp_path, one("ShuffleChannel", "shuffle_channel_param { group: 3 }"), x=x)
    assert_near(found["y"], functional.channel_shuffle(torch.tensor(x), 3))


def test_upsample_repeats_pixels(tmp_path):
    x = values(2, 3, 4, 5)
    found = run(tmp_path, one("Upsample", "upsample_param { scale: 3 }"), x=x)
    assert_near(found["y"], functional.interpolate(torch.tensor(x), scale_factor=3))


def test_upsample_puts_back_what_a_pooling_took(tmp_path):
    x = values(2, 3, 6, 8)
    found = run(
        tmp_path,
        'layer { name: "P" type: "Pooling" bottom: "x" top: "p" top: "m"'
        " pooling_param { kernel_size: 2 stride: 2 } }"
        'layer { name: "L" type: "Upsample" bottom: "p" bottom: "m" top: "y" }',
        x=x,
    )
    pooled, places = functional.max_pool2d(torch.tensor(x), 2, return_indices=True)
    assert_near(found["m"], places.float())
    assert_near(found["y"], functional.max_unpool2d(pooled, places, 2))


@pytest.mark.parametrize("fields", ["zoom_factor: 3", "shrink_factor: 2", "height: 5 width: 9"])
def test_interp(tmp_path, fields):
    x = values(2, 3, 7, 9)
    found = run(tmp_path, one("Interp", f"interp_param {{ {fields} }}"), x=x)["y"]
    assert_near(
        found,
        functional.interpolate(
            torch.tensor(x), size=found.shape[2:], mode="bilinear", align_corners=True
        ),
    )


def test_selu(tmp_path):
    x = values(4, 50)
    assert_near(run(tmp_path, one("SeLu"), x=x)["y"], functional.selu(torch.tensor(x)))


def test_depthwise_convolution(tmp_path):
    x = values(2, 8, 7, 7)
    path = tmp_path / "net.prototxt"
    path.write_text(
        'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [2, 8, 7, 7] } } }'
        + one("ConvolutionDepthwise", "convolution_param { kernel_size: 3 stride: 2 pad: 1 }")
    )
    net = caffe.Net(str(path), caffe.TEST)
    weights, bias = values(8, 1, 3, 3, seed=3), values(8, seed=4)
    net.params["L"][0].data[...], net.params["L"][1].data[...] = weights, bias
    net.blobs["x"].data[...] = x
    net.forward()
    tensors = map(torch.tensor, (x, weights, bias))
    assert_near(net.blobs["y"].data, functional.conv2d(*tensors, stride=2, padding=1, groups=8))


def regions(count, images, side, seed=5):
    """Boxes (image, x1, y1, x2, y2), some of them partly outside."""
    random = np.random.default_rng(seed)
    corners = np.sort(random.uniform(-4, side + 4, (count, 2, 2)), axis=1).reshape(count, 4)
    return np.hstack([random.integers(0, images, (count, 1)), corners]).astype(np.float32)


def test_roi_pooling(tmp_path):
    ops = pytest.importorskip("torchvision.ops")
    x, boxes = values(2, 3, 9, 11), regions(20, 2, 36)
    found = run(
        tmp_path,
        'layer { name: "L" type: "ROIPooling" bottom: "x" bottom: "boxes" top: "y"'
        " roi_pooling_param { pooled_h: 3 pooled_w: 4 spatial_scale: 0.25 } }",
        x=x,
        boxes=boxes,
    )
    assert_near(found["y"], ops.roi_pool(torch.tensor(x), torch.tensor(boxes), (3, 4), 0.25))


def test_psroi_pooling(tmp_path):
    ops = pytest.importorskip("torchvision.ops")
    x, boxes = values(2, 32, 9, 11), np.clip(regions(20, 2, 9), 0, 7).round()
    found = run(
        tmp_path,
        'layer { name: "L" type: "PSROIPooling" bottom: "x" bottom: "boxes" top: "y"'
        " psroi_pooling_param { output_dim: 2 group_size: 4 spatial_scale: 1 } }",
        x=x,
        boxes=boxes,
    )
    # torchvision's regions end before their last corner, R-FCN's behind it; and it leaves the last
    # row and column of a map out.
    ends = torch.tensor(boxes) + torch.tensor([0, 0, 0, 1, 1])
    assert_near(found["y"], ops.ps_roi_pool(torch.tensor(x), ends, 4, 1.0))


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7])
def test_suppression(tmp_path, threshold):
    """DetectionOutput of one class, its places 0, keeps the priors that torchvision keeps."""
    ops = pytest.importorskip("torchvision.ops")
    boxes = regions(60, 1, 1)[:, 1:] / 9
    scores = np.random.default_rng(7).uniform(0, 1, 60).astype(np.float32)
    found = run(
        tmp_path,
        'layer { name: "L" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "prior"'
        ' top: "y" detection_output_param { num_classes: 2 code_type: CORNER'
        f" nms_param {{ nms_threshold: {threshold} }} }} }}",
        loc=np.zeros((1, 240), np.float32),
        conf=np.stack([1 - scores, scores], axis=1).reshape(1, 120),
        prior=np.concatenate([boxes.ravel(), np.ones(240, np.float32)]).reshape(1, 2, 240),
    )
    kept = ops.nms(torch.tensor(boxes), torch.tensor(scores), threshold)
    assert_near(found["y"].reshape(-1, 7)[:, 3:], torch.tensor(boxes)[kept])
