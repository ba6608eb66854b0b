# SPDX-License-Identifier: Apache-2.0
"""Trains a small net in PyTorch on drawn shapes and writes it as shapes.onnx beside this file.

The net of the tutorial finetune.ipynb: to make it anew, run this with torch, onnx and pillow.
"""

import pathlib
import random

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import nn


def drawn(i):
    """An ellipse, a rectangle or a triangle on noise, as 32 x 32 numbers, and its class."""
    place = random.Random(i)
    image = Image.effect_noise((32, 32), 80).convert("L")
    x, y, size = place.randint(2, 12), place.randint(2, 12), place.randint(10, 16)
    draw, fill = ImageDraw.Draw(image), place.choice((0, 255))
    if i % 3 == 0:
        draw.ellipse((x, y, x + size, y + size), fill=fill)
    elif i % 3 == 1:
        draw.rectangle((x, y, x + size, y + size), fill=fill)
    else:
        draw.polygon(((x, y + size), (x + size, y + size), (x + size // 2, y)), fill=fill)
    return np.asarray(image, np.float32)[None] / 256, i % 3


def main():
    """Trains on 5,400 drawings, tells the share of 600 others that is right, and writes the net."""
    torch.manual_seed(1)
    net = nn.Sequential(
        *(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 3)),
    )
    images, labels = zip(*(drawn(i) for i in range(6000)), strict=True)
    images, labels = torch.tensor(np.stack(images)), torch.tensor(labels)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for epoch in range(12):
        for batch in torch.randperm(5400).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
            optimizer.step()
        right = (net(images[5400:]).argmax(1) == labels[5400:]).float().mean()
        print(f"epoch {epoch}: {right:.3f} of the test images right")
    torch.onnx.export(
        net.eval(),
        images[:1],
        pathlib.Path(__file__).parent / "shapes.onnx",
        input_names=["data"],
        output_names=["scores"],
        dynamo=False,
    )


if __name__ == "__main__":
    main()
