# SPDX-License-Identifier: Apache-2.0
"""Three well separated classes of points, and a net that tells them apart."""

import numpy as np
import pandas as pd

NET = """
name: "blobs"
layer { name: "data" type: "MemoryData" top: "data" top: "label"
  memory_data_param { batch_size: 8 channels: 4 height: 1 width: 1 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
ROWS = 203  # which no batch divides


def solver(steps):
    """The text of a solver that learns them."""
    return f'base_lr: 0.1 momentum: 0.9 lr_policy: "fixed" max_iter: {steps} random_seed: 1'


def points():
    """The table, the same at every call: id, features, label."""
    rng = np.random.default_rng(1)
    label = np.arange(ROWS) % 3
    features = rng.normal(0, 0.3, (ROWS, 4)) + 2 * np.eye(4)[label]
    return pd.DataFrame({"id": np.arange(ROWS), "features": features.tolist(), "label": label})
