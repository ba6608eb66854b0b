# SPDX-License-Identifier: Apache-2.0
"""What the PyTorch sides of the benches share."""

import pathlib
import re

import torch
from torch_nets import NETS


def is_channels_last(name, mode):
    """Whether the mode and net use channels-last; sequences have no such form."""
    return mode.endswith("_cl") and len(NETS[name][2]) == 3


def built_net(name, mode):
    """A net with fixed weights, and the same net in the form that the mode runs."""
    torch.manual_seed(1)
    net = NETS[name][0]()
    if is_channels_last(name, mode):
        net = net.to(memory_format=torch.channels_last)
    return net, torch.compile(net) if mode.startswith("compile") else net


def images_of(name, mode, batch):
    """A batch of noise and its labels; 0: the net's usual batch size."""
    _, usual, shape, classes = NETS[name]
    images = torch.rand(batch or usual, *shape)
    if is_channels_last(name, mode):
        images = images.to(memory_format=torch.channels_last)
    return images, torch.randint(classes, (batch or usual,))


def peak_mb():
    """The peak memory of this process, in MiB."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024
