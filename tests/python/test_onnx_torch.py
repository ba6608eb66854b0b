# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 and MobileNetV2 as PyTorch exports them, read as nets. Skipped where PyTorch is not."""

import pathlib
import sys

import numpy as np
import pytest
from built import caffe
from program import ROOT, needs_the_program, run

# What bench/setup-peers has installed; what is in the test's own environment goes before it.
sys.path += map(str, ROOT.glob("build/peers/lib/python3.*/site-packages"))
torch = pytest.importorskip("torch")
nn = torch.nn

pytestmark = needs_the_program


def conv_norm(inputs, outputs, size=3, stride=1, groups=1):
    return [
        nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]


class Residual(nn.Module):
    """Two convolutions beside a shortcut (He et al. 2016)."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.main = nn.Sequential(
            *conv_norm(inputs, outputs, 3, stride), nn.ReLU(), *conv_norm(outputs, outputs)
        )
        same = stride == 1 and inputs == outputs
        self.shortcut = (
            nn.Identity() if same else nn.Sequential(*conv_norm(inputs, outputs, 1, stride))
        )

    def forward(self, x):
        return torch.relu(self.main(x) + self.shortcut(x))


class Inverted(nn.Module):
    """Wide depthwise convolutions between narrow ends (Sandler et al. 2018)."""

    def __init__(self, inputs, outputs, stride, widening):
        super().__init__()
        wide = inputs * widening
        parts = [*conv_norm(inputs, wide, 1), nn.ReLU6()] if widening > 1 else []
        parts += [*conv_norm(wide, wide, 3, stride, groups=wide), nn.ReLU6()]
        self.main = nn.Sequential(*parts, *conv_norm(wide, outputs, 1))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.main(x) if self.adds else self.main(x)


class Mean(nn.Module):
    """The mean over height and width, as MobileNetV2 ends."""

    def forward(self, x):
        return nn.functional.adaptive_avg_pool2d(x, (1, 1)).flatten(1)


def resnet18():
    parts = [*conv_norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        parts += [Residual(channels, outputs, stride), Residual(outputs, outputs, 1)]
        channels = outputs
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def mobilenet_v2():
    parts = [*conv_norm(3, 32, 3, 2), nn.ReLU6()]
    channels = 32
    for widening, outputs, repeats, stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for i in range(repeats):
            parts.append(Inverted(channels, outputs, stride if i == 0 else 1, widening))
            channels = outputs
    parts += [*conv_norm(channels, 1280, 1), nn.ReLU6(), Mean(), nn.Dropout(0.2)]
    return nn.Sequential(*parts, nn.Linear(1280, 1000))


def randomize(model):
    """Statistics as after some training: else BatchNorm would hardly be tested."""
    torch.manual_seed(3)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, 0, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.2)


@pytest.mark.parametrize("make", [resnet18, mobilenet_v2])
@pytest.mark.parametrize("exporter", ["classic", "dynamo"])
@pytest.mark.parametrize("batch", ["fixed", "open"])
def test_exported_models_score_the_same(tmp_path, make, exporter, batch):
    pytest.importorskip("onnx")
    if exporter == "dynamo":
        pytest.importorskip("onnxscript")
    model = make().eval()
    randomize(model)
    x = torch.randn(2, 3, 224, 224)
    options = {"dynamo": exporter == "dynamo", "input_names": ["in"], "output_names": ["out"]}
    options["opset_version"] = 18 if options["dynamo"] else 17
    if batch == "open":
        if options["dynamo"]:
            options["dynamic_shapes"] = ({0: torch.export.Dim("batch")},)
        else:
            options["dynamic_axes"] = {"in": {0: "batch"}, "out": {0: "batch"}}
    if options["dynamo"]:
        options["external_data"] = False
    torch.onnx.export(model, (x,), str(tmp_path / "net.onnx"), **options)
    run("import_onnx", "net.onnx", "net.prototxt", "net.caffemodel", "--batch", "2", cwd=tmp_path)
    paths = [str(pathlib.Path(tmp_path, name)) for name in ("net.prototxt", "net.caffemodel")]
    net = caffe.Net(*paths, caffe.TEST)
    net.blobs["in"].data[...] = x.numpy()
    net.forward()
    with torch.no_grad():
        expected = model(x).numpy()
    error = np.abs(net.blobs["out"].data - expected).max()
    assert error <= 1e-5 * np.abs(expected).max()
