# SPDX-License-Identifier: Apache-2.0
"""The nets of bench/nets and bench/make_net.py in PyTorch, the same layer by layer."""

import torch
from torch import nn
from torch.nn import functional


class Norm(nn.Module):
    """AlexNet's local response normalisation, in the fastest form known for PyTorch on a CPU.

    The sums over channels are a 1 x 1 convolution with a band matrix; the power, two square roots.
    """

    def __init__(self, channels, size=5, alpha=1e-4):
        super().__init__()
        place = torch.arange(channels)
        band = (place[:, None] - place[None, :]).abs() <= size // 2
        self.register_buffer("band", band.float()[:, :, None, None] * alpha / size)

    def forward(self, x):
        """x * (1 + alpha / size * sum of squares)^-0.75."""
        root = torch.rsqrt(functional.conv2d(x * x, self.band) + 1.0)
        return x * (root * torch.sqrt(root))


def max_pool(kernel, stride, pad=0):
    """Caffe rounds the number of windows up."""
    return nn.MaxPool2d(kernel, stride, pad, ceil_mode=True)


def rectified(*layer):
    """A convolution and its ReLU."""
    return nn.Sequential(nn.Conv2d(*layer[:5], groups=layer[5] if len(layer) > 5 else 1), nn.ReLU())


def lenet():
    """Caffe's LeNet."""
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        max_pool(2, 2),
        nn.Conv2d(20, 50, 5),
        max_pool(2, 2),
        nn.Flatten(),
        nn.Linear(800, 500),
        nn.ReLU(),
        nn.Linear(500, 10),
    )


def cifar10_quick():
    """Krizhevsky's small net for CIFAR-10."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=2),
        max_pool(3, 2),
        nn.ReLU(),
        rectified(32, 32, 5, 1, 2),
        nn.AvgPool2d(3, 2, ceil_mode=True),
        rectified(32, 64, 5, 1, 2),
        nn.AvgPool2d(3, 2, ceil_mode=True),
        nn.Flatten(),
        nn.Linear(1024, 64),
        nn.Linear(64, 10),
    )


def alexnet():
    """Krizhevsky et al. 2012 with Caffe's order of layers."""
    return nn.Sequential(
        rectified(3, 96, 11, 4, 0),
        Norm(96),
        max_pool(3, 2),
        rectified(96, 256, 5, 1, 2, 2),
        Norm(256),
        max_pool(3, 2),
        rectified(256, 384, 3, 1, 1),
        rectified(384, 384, 3, 1, 1, 2),
        rectified(384, 256, 3, 1, 1, 2),
        max_pool(3, 2),
        nn.Flatten(),
        *(nn.Linear(9216, 4096), nn.ReLU(), nn.Dropout(0.5)),
        *(nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(0.5)),
        nn.Linear(4096, 1000),
    )


class Inception(nn.Module):
    """Four branches, joined along the channels."""

    def __init__(self, x, one, reduce3, three, reduce5, five, pool):
        super().__init__()
        self.branches = nn.ModuleList(
            [
                rectified(x, one, 1, 1, 0),
                nn.Sequential(rectified(x, reduce3, 1, 1, 0), rectified(reduce3, three, 3, 1, 1)),
                nn.Sequential(rectified(x, reduce5, 1, 1, 0), rectified(reduce5, five, 5, 1, 2)),
                nn.Sequential(max_pool(3, 1, 1), rectified(x, pool, 1, 1, 0)),
            ]
        )

    def forward(self, x):
        """All branches of one input."""
        return torch.cat([branch(x) for branch in self.branches], 1)


class GoogLeNet(nn.Module):
    """Szegedy et al. 2014 with both auxiliary heads."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(
            *(rectified(3, 64, 7, 2, 3), max_pool(3, 2), Norm(64)),
            *(rectified(64, 64, 1, 1, 0), rectified(64, 192, 3, 1, 1), Norm(192), max_pool(3, 2)),
            Inception(192, 64, 96, 128, 16, 32, 32),
            Inception(256, 128, 128, 192, 32, 96, 64),
            max_pool(3, 2),
            Inception(480, 192, 96, 208, 16, 48, 64),
        )
        self.second = nn.Sequential(
            Inception(512, 160, 112, 224, 24, 64, 64),
            Inception(512, 128, 128, 256, 24, 64, 64),
            Inception(512, 112, 144, 288, 32, 64, 64),
        )
        self.third = nn.Sequential(
            *(Inception(528, 256, 160, 320, 32, 128, 128), max_pool(3, 2)),
            Inception(832, 256, 160, 320, 32, 128, 128),
            Inception(832, 384, 192, 384, 48, 128, 128),
            *(nn.AvgPool2d(7, 1), nn.Flatten(), nn.Dropout(0.4), nn.Linear(1024, 1000)),
        )
        self.heads = nn.ModuleList([self.head(512), self.head(528)])

    @staticmethod
    def head(channels):
        """An auxiliary classifier."""
        return nn.Sequential(
            *(nn.AvgPool2d(5, 3), rectified(channels, 128, 1, 1, 0), nn.Flatten()),
            *(nn.Linear(2048, 1024), nn.ReLU(), nn.Dropout(0.7), nn.Linear(1024, 1000)),
        )

    def forward(self, x):
        """The scores and those of the auxiliary heads."""
        a = self.first(x)
        b = self.second(a)
        return self.third(b), self.heads[0](a), self.heads[1](b)


class Bottleneck(nn.Module):
    """A block of ResNet-50; the first convolution has the stride."""

    def __init__(self, x, width, stride, project):
        super().__init__()

        def conv(i, o, kernel, stride=1):
            layer = nn.Conv2d(i, o, kernel, stride, kernel // 2, bias=False)
            return nn.Sequential(layer, nn.BatchNorm2d(o))

        self.body = nn.Sequential(
            *(conv(x, width, 1, stride), nn.ReLU(inplace=True)),
            *(conv(width, width, 3), nn.ReLU(inplace=True)),
            conv(width, 4 * width, 1),
        )
        self.side = conv(x, 4 * width, 1, stride) if project else nn.Identity()

    def forward(self, x):
        """relu(body(x) + x)."""
        return functional.relu(self.body(x) + self.side(x), inplace=True)


def resnet50():
    """He et al. 2015."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    layers.append(max_pool(3, 2))
    channels = 64
    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for i in range(blocks):
            layers.append(Bottleneck(channels, width, 2 if stage and i == 0 else 1, i == 0))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AvgPool2d(7), nn.Flatten(), nn.Linear(2048, 1000))


class Block(nn.Module):
    """Attention and feed-forward parts, each with normalisation before it."""

    def __init__(self, features, heads):
        super().__init__()
        self.norm_a, self.norm_b = nn.LayerNorm(features), nn.LayerNorm(features)
        self.inner, self.outer = nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.wide = nn.Linear(features, 4 * features)
        self.narrow = nn.Linear(4 * features, features)
        self.heads = heads

    def forward(self, x):
        """x + attention, + feed-forward."""
        n, tokens, features = x.shape
        parts = self.inner(self.norm_a(x)).view(n, tokens, 3, self.heads, features // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.outer(mixed.transpose(1, 2).reshape(n, tokens, features))
        return x + self.narrow(functional.gelu(self.wide(self.norm_b(x))))


def transformer():
    """Four blocks of 256 features on 128 tokens."""
    blocks = [Block(256, 4) for _ in range(4)]
    return nn.Sequential(*blocks, nn.LayerNorm(256), nn.Flatten(), nn.Linear(128 * 256, 10))


class Recurrent(nn.Module):
    """Two layers of 512; the last step's hidden values predict the class."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(128, 512, 2)
        self.scores = nn.Linear(512, 10)

    def forward(self, x):
        """x: a batch of sequences."""
        return self.scores(self.lstm(x.transpose(0, 1))[0][-1])


def mlp():
    """Three linear layers."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(3072, 4096),
        nn.ReLU(),
        nn.Linear(4096, 1024),
        nn.ReLU(),
        nn.Linear(1024, 10),
    )


# Net, batch, shape of an image or a sequence, classes.
NETS = {
    "lenet": (lenet, 64, (1, 28, 28), 10),
    "cifar10_quick": (cifar10_quick, 100, (3, 32, 32), 10),
    "alexnet": (alexnet, 32, (3, 227, 227), 1000),
    "googlenet": (GoogLeNet, 32, (3, 224, 224), 1000),
    "resnet50": (resnet50, 16, (3, 224, 224), 1000),
    "transformer": (transformer, 32, (128, 256), 10),
    "lstm": (Recurrent, 32, (64, 128), 10),
    "mlp": (mlp, 64, (3, 32, 32), 10),
}
