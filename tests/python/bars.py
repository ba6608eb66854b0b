# SPDX-License-Identifier: Apache-2.0
"""Databases of images with a bright bar, and a net and a solver that learn them."""

import gzip
import random
import struct

from program import run

SIDE, CLASSES = 8, 4

NET = """
name: "Bars"
layer {{
  name: "images" type: "Data" top: "data" top: "label"
  include {{ phase: TRAIN }}
  transform_param {{ scale: 0.00390625 mirror: true }}
  data_param {{ source: "train_db" batch_size: 16 backend: {backend} }}
}}
layer {{
  name: "images" type: "Data" top: "data" top: "label"
  include {{ phase: TEST }}
  transform_param {{ scale: 0.00390625 }}
  data_param {{ source: "test_db" batch_size: 10 backend: {backend} }}
}}
layer {{
  name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param {{ num_output: 6 kernel_size: 3 weight_filler {{ type: "xavier" }} }}
}}
layer {{ name: "relu" type: "ReLU" bottom: "conv" top: "conv" }}
layer {{ name: "drop" type: "Dropout" bottom: "conv" top: "conv" }}
layer {{
  name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param {{ num_output: 4 weight_filler {{ type: "xavier" }} }}
}}
layer {{
  name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include {{ phase: TEST }}
}}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}
"""

SOLVER = """
net: "net.prototxt"
test_iter: 3 test_interval: 10
base_lr: 0.05 momentum: 0.9 weight_decay: 0.001
lr_policy: "multistep" gamma: 0.5 stepvalue: 8 stepvalue: 14
display: 5 max_iter: 20
snapshot: 10 snapshot_prefix: "bars"
random_seed: 3
"""


def write_idx(folder, name, count, seed, opened=open):
    """Images with a bright bar whose row tells the class, and their labels."""
    rng = random.Random(seed)
    labels = bytes(rng.randrange(CLASSES) for _ in range(count))
    pixels = bytearray()
    for label in labels:
        image = [[rng.randrange(60) for _ in range(SIDE)] for _ in range(SIDE)]
        image[2 * label] = [200 + rng.randrange(56) for _ in range(SIDE)]
        pixels += bytes(value for row in image for value in row)
    with opened(folder / f"{name}-images", "wb") as file:
        file.write(struct.pack(">4i", 0x803, count, SIDE, SIDE) + bytes(pixels))
    with opened(folder / f"{name}-labels", "wb") as file:
        file.write(struct.pack(">2i", 0x801, count) + labels)


def make_work(folder, backend):
    write_idx(folder, "train", 50, 1)
    write_idx(folder, "test", 30, 2, gzip.open)
    for part in ("train", "test"):
        flag = f"-backend={backend}"
        run("convert_mnist", flag, f"{part}-images", f"{part}-labels", f"{part}_db", cwd=folder)
    (folder / "net.prototxt").write_text(NET.format(backend=backend.upper()))
    (folder / "solver.prototxt").write_text(SOLVER)
    return folder
