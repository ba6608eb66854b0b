# SPDX-License-Identifier: Apache-2.0
"""The fine-tuning tutorial with PyTorch, in one process: the same net, batch, epochs and rate.

PyTorch reads no ONNX; its user has the weights as PyTorch's own file, which is made here of
shapes.onnx and is not counted. `bench/tutorials/lines finetune` runs it.
"""

import io

import numpy as np
import onnx
import torch
import tutorial
from onnx import numpy_helper
from PIL import Image
from torch import nn

FILE = "shapes.pt"


def write_weights():
    """Writes the weights of shapes.onnx as PyTorch keeps them."""
    net = onnx.load(tutorial.FOLDER / "shapes.onnx").graph
    weights = {w.name: torch.tensor(numpy_helper.to_array(w)) for w in net.initializer}
    torch.save(weights, FILE)


def right_of(train, test):
    """The share of the test images that it gets right."""
    write_weights()

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
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 32),
        nn.ReLU(),
        nn.Linear(32, 3),
    )
    net.load_state_dict(torch.load(FILE))
    net[:9].requires_grad_(False)
    net[-1] = nn.Linear(32, 3)
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], 0.003)
    for _ in range(100):
        for batch in torch.randperm(len(images)).split(15):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        right = (net(test_images).argmax(1) == test_labels).float().mean().item()
    # end
    return right


if __name__ == "__main__":
    tutorial.run("finetune", right_of)
