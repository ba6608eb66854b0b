#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a well-known net as a prototxt for train_bench: bench/make_net.py NET [BATCH].

cifar10_quick, AlexNet and GoogLeNet are those of Caffe's model zoo, ResNet-50 is that of He et
al. (the stride in a block's first 1 x 1 convolution). Their images come from memory. The
transformer has 4 blocks of 256 features on 128 tokens, the LSTM two layers of 512 on 64 steps of
128 features; both predict one class for the whole sequence. The MLP has three inner products.
"""

import sys

BATCHES = {"cifar10_quick": 100, "alexnet": 32, "googlenet": 32, "resnet50": 16}
BATCHES |= {"transformer": 32, "lstm": 32, "mlp": 64}


class Net:
    """Collects layers; every method returns the name of the layer's top."""

    def __init__(self, name, batch, size, channels=3, width=None):
        self.text = [f'name: "{name}"']
        shape = f"channels: {channels} height: {size} width: {width or size}"
        data = f"batch_size: {batch} {shape}"
        self.text.append(
            'layer { name: "data" type: "MemoryData" top: "data" top: "label" '
            f"memory_data_param {{ {data} }} }}"
        )

    def layer(self, kind, name, bottoms, fields="", in_place=False):
        """Appends a layer with one top, its first bottom or a new blob."""
        top = bottoms[0] if in_place else name
        wires = " ".join(f'bottom: "{b}"' for b in bottoms)
        self.text.append(f'layer {{ name: "{name}" type: "{kind}" {wires} top: "{top}" {fields} }}')
        return top

    def conv(self, name, x, outputs, kernel, stride=1, pad=0, group=1, relu=True, bias=True):
        """A convolution, with a ReLU unless told otherwise."""
        fields = f"num_output: {outputs} kernel_size: {kernel} stride: {stride} pad: {pad}"
        fields += f' group: {group} weight_filler {{ type: "xavier" }}'
        if not bias:
            fields += " bias_term: false"
        self.layer("Convolution", name, [x], f"convolution_param {{ {fields} }}")
        return self.relu(name) if relu else name

    def relu(self, x):
        """A ReLU in place."""
        return self.layer("ReLU", f"{x}_relu", [x], in_place=True)

    def pool(self, name, x, kind, kernel, stride, pad=0):
        """MAX or AVE pooling."""
        fields = f"pool: {kind} kernel_size: {kernel} stride: {stride} pad: {pad}"
        return self.layer("Pooling", name, [x], f"pooling_param {{ {fields} }}")

    def norm(self, name, x):
        """AlexNet's local response normalisation."""
        return self.layer("LRN", name, [x], "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }")

    def ip(self, name, x, outputs, relu=False, dropout=0):
        """An inner product, with ReLU and Dropout if requested."""
        fields = f'num_output: {outputs} weight_filler {{ type: "xavier" }}'
        self.layer("InnerProduct", name, [x], f"inner_product_param {{ {fields} }}")
        if relu:
            self.relu(name)
        if dropout:
            self.dropout(name, dropout)
        return name

    def wide(self, name, x, outputs, axis):
        """An inner product along the last axis of a sequence."""
        fields = f'num_output: {outputs} axis: {axis} weight_filler {{ type: "xavier" }}'
        return self.layer("InnerProduct", name, [x], f"inner_product_param {{ {fields} }}")

    def dropout(self, x, ratio):
        """Dropout in place."""
        fields = f"dropout_param {{ dropout_ratio: {ratio} }}"
        return self.layer("Dropout", f"{x}_drop", [x], fields, in_place=True)

    def loss(self, name, x, weight=1):
        """Softmax loss."""
        self.layer("SoftmaxWithLoss", name, [x, "label"], f"loss_weight: {weight}")


def cifar10_quick(batch):
    """Krizhevsky's small net for CIFAR-10."""
    net = Net("CIFAR10_quick", batch, 32)
    x = net.conv("conv1", "data", 32, 5, pad=2, relu=False)
    x = net.relu(net.pool("pool1", x, "MAX", 3, 2))
    x = net.pool("pool2", net.conv("conv2", x, 32, 5, pad=2), "AVE", 3, 2)
    x = net.pool("pool3", net.conv("conv3", x, 64, 5, pad=2), "AVE", 3, 2)
    net.loss("loss", net.ip("ip2", net.ip("ip1", x, 64), 10))
    return net


def alexnet(batch):
    """Krizhevsky et al. 2012 with Caffe's order of layers."""
    net = Net("AlexNet", batch, 227)
    x = net.norm("norm1", net.conv("conv1", "data", 96, 11, stride=4))
    x = net.pool("pool1", x, "MAX", 3, 2)
    x = net.norm("norm2", net.conv("conv2", x, 256, 5, pad=2, group=2))
    x = net.conv("conv3", net.pool("pool2", x, "MAX", 3, 2), 384, 3, pad=1)
    x = net.conv("conv4", x, 384, 3, pad=1, group=2)
    x = net.pool("pool5", net.conv("conv5", x, 256, 3, pad=1, group=2), "MAX", 3, 2)
    x = net.ip("fc6", x, 4096, relu=True, dropout=0.5)
    x = net.ip("fc7", x, 4096, relu=True, dropout=0.5)
    net.loss("loss", net.ip("fc8", x, 1000))
    return net


def googlenet(batch):
    """Szegedy et al. 2014 with both auxiliary heads."""
    net = Net("GoogLeNet", batch, 224)

    def inception(name, x, one, reduce3, three, reduce5, five, pool):
        branches = [
            net.conv(f"{name}_1x1", x, one, 1),
            net.conv(f"{name}_3x3", net.conv(f"{name}_3x3r", x, reduce3, 1), three, 3, pad=1),
            net.conv(f"{name}_5x5", net.conv(f"{name}_5x5r", x, reduce5, 1), five, 5, pad=2),
            net.conv(f"{name}_proj", net.pool(f"{name}_pool", x, "MAX", 3, 1, 1), pool, 1),
        ]
        return net.layer("Concat", name, branches)

    def head(name, x):
        x = net.conv(f"{name}_conv", net.pool(f"{name}_pool", x, "AVE", 5, 3), 128, 1)
        x = net.ip(f"{name}_fc", x, 1024, relu=True, dropout=0.7)
        net.loss(f"{name}_loss", net.ip(f"{name}_classifier", x, 1000), 0.3)

    x = net.conv("conv1", "data", 64, 7, stride=2, pad=3)
    x = net.conv("conv2r", net.norm("norm1", net.pool("pool1", x, "MAX", 3, 2)), 64, 1)
    x = net.norm("norm2", net.conv("conv2", x, 192, 3, pad=1))
    x = inception("i3a", net.pool("pool2", x, "MAX", 3, 2), 64, 96, 128, 16, 32, 32)
    x = inception("i3b", x, 128, 128, 192, 32, 96, 64)
    x = inception("i4a", net.pool("pool3", x, "MAX", 3, 2), 192, 96, 208, 16, 48, 64)
    head("head1", x)
    x = inception("i4b", x, 160, 112, 224, 24, 64, 64)
    x = inception("i4c", x, 128, 128, 256, 24, 64, 64)
    x = inception("i4d", x, 112, 144, 288, 32, 64, 64)
    head("head2", x)
    x = inception("i4e", x, 256, 160, 320, 32, 128, 128)
    x = inception("i5a", net.pool("pool4", x, "MAX", 3, 2), 256, 160, 320, 32, 128, 128)
    x = inception("i5b", x, 384, 192, 384, 48, 128, 128)
    x = net.dropout(net.pool("pool5", x, "AVE", 7, 1), 0.4)
    net.loss("loss", net.ip("classifier", x, 1000))
    return net


def resnet50(batch):
    """He et al. 2015."""
    net = Net("ResNet-50", batch, 224)

    def conv(name, x, outputs, kernel, stride=1, relu=True):
        x = net.conv(name, x, outputs, kernel, stride, kernel // 2, relu=False, bias=False)
        net.layer("BatchNorm", f"bn_{name}", [x], in_place=True)
        net.layer("Scale", f"scale_{name}", [x], "scale_param { bias_term: true }", in_place=True)
        return net.relu(x) if relu else x

    def block(name, x, width, stride, project):
        y = conv(f"{name}_a", x, width, 1, stride)
        y = conv(f"{name}_c", conv(f"{name}_b", y, width, 3), 4 * width, 1, relu=False)
        if project:
            x = conv(f"{name}_p", x, 4 * width, 1, stride, relu=False)
        return net.relu(net.layer("Eltwise", name, [x, y]))

    x = net.pool("pool1", conv("conv1", "data", 64, 7, 2), "MAX", 3, 2)
    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)], 2):
        for i in range(blocks):
            x = block(
                f"res{stage}{chr(97 + i)}", x, width, 2 if stage > 2 and i == 0 else 1, i == 0
            )
    net.loss("loss", net.ip("fc", net.pool("pool5", x, "AVE", 7, 1), 1000))
    return net


def transformer(batch):
    """Vaswani et al. 2017, with pre-normalisation (Xiong et al. 2020)."""
    net = Net("transformer", batch, 256, channels=128, width=1)
    x = net.layer("Reshape", "x", ["data"], "reshape_param { shape { dim: 0 dim: 0 dim: 256 } }")
    heads = 'attention_param { num_heads: 4 weight_filler { type: "xavier" } }'
    for i in range(1, 5):
        y = net.layer("LayerNorm", f"norm{i}a", [x])
        y = net.layer("Attention", f"attention{i}", [y], heads)
        x = net.layer("Eltwise", f"y{i}", [x, y])
        y = net.wide(f"wide{i}", net.layer("LayerNorm", f"norm{i}b", [x]), 1024, 2)
        y = net.wide(f"narrow{i}", net.layer("GELU", f"gelu{i}", [y]), 256, 2)
        x = net.layer("Eltwise", f"x{i}", [x, y])
    net.loss("loss", net.ip("scores", net.layer("LayerNorm", "norm", [x]), 10))
    return net


def lstm(batch):
    """Two layers of 512; the last step's hidden values predict the class."""
    net = Net("LSTM", batch, 128, channels=64, width=1)
    steps = net.layer(
        "Reshape", "x", ["data"], "reshape_param { shape { dim: 0 dim: 0 dim: 128 } }"
    )
    x = net.layer("Permute", "steps", [steps], "permute_param { order: 1 order: 0 order: 2 }")
    ones = f'shape {{ dim: 64 dim: {batch} }} data_filler {{ type: "constant" value: 1 }}'
    net.layer("DummyData", "cont", [], f"dummy_data_param {{ {ones} }}")
    for name in ("lstm1", "lstm2"):
        fields = 'num_output: 512 weight_filler { type: "uniform" min: -0.04 max: 0.04 }'
        x = net.layer("LSTM", name, [x, "cont"], f"recurrent_param {{ {fields} }}")
    net.text.append(
        f'layer {{ name: "last" type: "Slice" bottom: "{x}" top: "earlier" top: "last" '
        "slice_param { axis: 0 slice_point: 63 } }"
    )
    net.text.append('layer { name: "silence" type: "Silence" bottom: "earlier" }')
    x = net.layer(
        "Reshape", "hidden", ["last"], f"reshape_param {{ shape {{ dim: {batch} dim: 512 }} }}"
    )
    net.loss("loss", net.ip("scores", x, 10))
    return net


def mlp(batch):
    """Images of 3 x 32 x 32 without convolutions."""
    net = Net("MLP", batch, 32)
    x = net.ip("ip1", "data", 4096, relu=True)
    net.loss("loss", net.ip("ip3", net.ip("ip2", x, 1024, relu=True), 10))
    return net


def main():
    """Prints the requested net."""
    names = {
        f.__name__: f for f in (cifar10_quick, alexnet, googlenet, resnet50, transformer, lstm, mlp)
    }
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in names:
        sys.exit(f"usage: make_net.py {'|'.join(names)} [BATCH]")
    batch = int(sys.argv[2]) if len(sys.argv) > 2 else BATCHES[sys.argv[1]]
    print("\n".join(names[sys.argv[1]](batch).text))


if __name__ == "__main__":
    main()
