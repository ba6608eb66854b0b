# SPDX-License-Identifier: Apache-2.0
"""The images tutorial with PyTorch, in one process: the same net, batch, epochs and rates.

`bench/tutorials/lines images` runs it.
"""

import io

import numpy as np
import torch
import tutorial
from PIL import Image
from torch import nn


def right_of(train, test):
    """The share of the test images that it gets right."""

    # begin
    def tensors(table):
        rows = table.toPandas()
        pixels = np.stack([np.asarray(Image.open(io.BytesIO(file))) for file in rows.image])
        return torch.tensor(pixels)[:, None] / 256, torch.tensor(rows.label.to_numpy()).long()

    torch.manual_seed(1)
    images, labels = tensors(train)
    test_images, test_labels = tensors(test)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2048, 32),
        nn.ReLU(),
        nn.Linear(32, 3),
    )
    optimizer = torch.optim.Adam(net.parameters(), 0.002)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20 * len(images) // 16)
    for _ in range(20):
        for batch in torch.randperm(len(images)).split(16):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
            optimizer.step()
            rate.step()
    with torch.no_grad():
        right = (net(test_images).argmax(1) == test_labels).float().mean().item()
    # end
    return right


if __name__ == "__main__":
    tutorial.run("images", right_of)
