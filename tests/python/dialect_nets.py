# SPDX-License-Identifier: Apache-2.0
"""Nets of forks, written with NetSpec: SE-ResNet-50, DenseNet-121 and MobileNet-SSD's detector."""

from cafetiere import NetSpec
from cafetiere import layers as L
from cafetiere import params as P


def _conv(n, name, bottom, outputs, kernel, stride=1, pad=0, bias=False):
    n[name] = L.Convolution(bottom, num_output=outputs, kernel_size=kernel, stride=stride, pad=pad,
                            bias_term=bias)  # fmt: skip
    return n[name]


def _norm(n, name, bottom, relu=True):
    """BatchNorm, Scale and ReLU behind a convolution, in place as in the published nets."""
    n[f"{name}/bn"] = L.BatchNorm(bottom, in_place=True)
    n[f"{name}/scale"] = L.Scale(n[f"{name}/bn"], bias_term=True, in_place=True)
    if relu:
        n[f"{name}/relu"] = L.ReLU(n[f"{name}/scale"], in_place=True)
    return bottom


def _input(n, side):
    n.data = L.Input(input_param=dict(shape=dict(dim=[1, 3, side, side])))
    return n.data


SE_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))


def se_resnet_50(side, classes=1000):
    """Squeeze-and-excitation by Axpy (Hu et al. 2018)."""
    n = NetSpec()
    x = _norm(n, "conv1", _conv(n, "conv1", _input(n, side), 64, 7, 2, 3))
    n.pool1 = x = L.Pooling(x, pool=P.Pooling.MAX, kernel_size=3, stride=2, ceil_mode=True)
    for stage, (width, blocks) in enumerate(SE_STAGES, 2):
        for block in range(blocks):
            x = _se_block(n, f"conv{stage}_{block + 1}", x, width, block == 0, stage > 2)
    n.pool5 = L.Pooling(x, pool=P.Pooling.AVE, global_pooling=True)
    n.classifier = L.InnerProduct(n.pool5, num_output=classes)
    n.prob = L.Softmax(n.classifier)
    return n.to_proto()


def _se_block(n, name, x, width, first, halve):
    stride = 2 if first and halve else 1
    y = _norm(n, f"{name}_reduce", _conv(n, f"{name}_reduce", x, width, 1, stride))
    y = _norm(n, f"{name}_3x3", _conv(n, f"{name}_3x3", y, width, 3, 1, 1))
    y = _norm(n, f"{name}_up", _conv(n, f"{name}_up", y, 4 * width, 1), relu=False)
    n[f"{name}_gap"] = z = L.Pooling(y, pool=P.Pooling.AVE, global_pooling=True)
    n[f"{name}_down_relu"] = z = L.ReLU(_conv(n, f"{name}_down", z, width // 4, 1, bias=True))
    n[f"{name}_prob"] = z = L.Sigmoid(_conv(n, f"{name}_excite", z, 4 * width, 1, bias=True))
    if first:
        x = _norm(n, f"{name}_proj", _conv(n, f"{name}_proj", x, 4 * width, 1, stride), relu=False)
    n[name] = L.Axpy(z, y, x)
    n[f"{name}_relu"] = L.ReLU(n[name], in_place=True)
    return n[name]


DENSE_BLOCKS, DENSE_GROWTH = (6, 12, 24, 16), 32


def densenet_121(side, classes=1000):
    """Dense blocks of pre-activated layers (Huang et al. 2017)."""
    n = NetSpec()
    x = _norm(n, "conv1", _conv(n, "conv1", _input(n, side), 64, 7, 2, 3))
    n.pool1 = x = L.Pooling(x, pool=P.Pooling.MAX, kernel_size=3, stride=2, pad=1, ceil_mode=False)
    channels = 64
    for block, layers in enumerate(DENSE_BLOCKS, 2):
        for layer in range(layers):
            name = f"conv{block}_{layer + 1}"
            y = _conv(n, f"{name}/x1", _before(n, f"{name}/x1", x), 4 * DENSE_GROWTH, 1)
            y = _conv(n, f"{name}/x2", _before(n, f"{name}/x2", y), DENSE_GROWTH, 3, 1, 1)
            n[f"concat_{block}_{layer + 1}"] = x = L.Concat(x, y)
            channels += DENSE_GROWTH
        x = _before(n, f"conv{block}_blk", x)
        if block - 1 < len(DENSE_BLOCKS):
            channels //= 2
            x = _conv(n, f"conv{block}_blk", x, channels, 1)
            n[f"pool{block}"] = x = L.Pooling(x, pool=P.Pooling.AVE, kernel_size=2, stride=2)
    n.pool = L.Pooling(x, pool=P.Pooling.AVE, global_pooling=True)
    return _ends(n, _conv(n, "fc", n.pool, classes, 1, bias=True))


def _before(n, name, x):
    """BatchNorm, Scale and ReLU in front of a convolution; x itself goes on elsewhere."""
    n[f"{name}/bn"] = y = L.BatchNorm(x)
    n[f"{name}/scale"] = L.Scale(y, bias_term=True, in_place=True)
    n[f"{name}/relu"] = L.ReLU(n[f"{name}/scale"], in_place=True)
    return y


def _ends(n, top):
    n.prob = L.Softmax(top)
    return n.to_proto()


# MobileNet: outputs and stride of each depthwise-separable pair.
PAIRS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1),
         (512, 1), (512, 1), (1024, 2), (1024, 1))  # fmt: skip
EXTRAS = ((256, 512), (128, 256), (128, 256), (64, 128))
# Of each map: its layer, smallest and largest box in 300 pixels, ratios.
MAPS = (
    ("conv11", 60, None, (2,)),
    ("conv13", 105, 150, (2, 3)),
    ("conv14_2", 150, 195, (2, 3)),
    ("conv15_2", 195, 240, (2, 3)),
    ("conv16_2", 240, 285, (2, 3)),
    ("conv17_2", 285, 300, (2, 3)),
)
VARIANCES = (0.1, 0.1, 0.2, 0.2)
CLASSES = 21
DETECTION = dict(num_classes=CLASSES, share_location=True, background_label_id=0, keep_top_k=20,
                 confidence_threshold=0.06, nms_param=dict(nms_threshold=0.45, top_k=40),
                 code_type=P.PriorBox.CENTER_SIZE)  # fmt: skip


def mobilenet_ssd(side):
    """The detector with all of its heads, normalisation merged as in the published deploy net."""
    n = NetSpec()
    image = _input(n, side)
    made = {"conv0": _plain(n, "conv0", image, 32, 3, 2, 1)}
    x, channels = made["conv0"], 32
    for i, (outputs, stride) in enumerate(PAIRS, 1):
        depthwise = dict(num_output=channels, kernel_size=3, stride=stride, pad=1)
        if i % 2:
            depthwise["group"] = channels
        kind = L.DepthwiseConvolution if i % 2 else L.ConvolutionDepthwise
        n[f"conv{i}/dw"] = kind(x, convolution_param=depthwise)
        n[f"conv{i}/dw/relu"] = L.ReLU(n[f"conv{i}/dw"], in_place=True)
        x = made[f"conv{i}"] = _plain(n, f"conv{i}", n[f"conv{i}/dw"], outputs, 1)
        channels = outputs
    for i, (narrow, wide) in enumerate(EXTRAS, 14):
        x = _plain(n, f"conv{i}_1", x, narrow, 1)
        x = made[f"conv{i}_2"] = _plain(n, f"conv{i}_2", x, wide, 3, 2, 1)
    return _detector(n, image, made)


def _plain(n, name, bottom, outputs, kernel, stride=1, pad=0):
    _conv(n, name, bottom, outputs, kernel, stride, pad, bias=True)
    n[f"{name}/relu"] = L.ReLU(n[name], in_place=True)
    return n[name]


def _detector(n, image, made):
    heads = {"loc": [], "conf": [], "prior": []}
    for name, least, most, ratios in MAPS:
        boxes = 1 + (most is not None) + 2 * len(ratios)
        for head, values in (("loc", 4), ("conf", CLASSES)):
            y = _conv(n, f"{name}_{head}", made[name], boxes * values, 1, bias=True)
            n[f"{name}_{head}_perm"] = L.Permute(y, permute_param=dict(order=[0, 2, 3, 1]))
            n[f"{name}_{head}_flat"] = L.Flatten(n[f"{name}_{head}_perm"], axis=1)
            heads[head].append(n[f"{name}_{head}_flat"])
        sizes = dict(min_size=[least], aspect_ratio=list(ratios), variance=list(VARIANCES))
        if most is not None:
            sizes["max_size"] = [most]
        n[f"{name}_prior"] = L.PriorBox(made[name], image, prior_box_param=sizes)
        heads["prior"].append(n[f"{name}_prior"])
    n.loc, n.conf = L.Concat(*heads["loc"], axis=1), L.Concat(*heads["conf"], axis=1)
    n.prior = L.Concat(*heads["prior"], axis=2)
    n.conf_rows = L.Reshape(n.conf, shape=dict(dim=[0, -1, CLASSES]))
    n.conf_softmax = L.Softmax(n.conf_rows, axis=2)
    n.conf_flat = L.Flatten(n.conf_softmax, axis=1)
    n.detections = L.DetectionOutput(n.loc, n.conf_flat, n.prior, detection_output_param=DETECTION)
    return n.to_proto()
