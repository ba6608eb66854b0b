# SPDX-License-Identifier: Apache-2.0
"""Lets scripts that `import caffe` run on cafetiere unchanged: the modules are the same objects.

A package of its own, to be installed only where Caffe itself is not.
"""

import importlib
import sys

import cafetiere

_MODULES = (
    "_caffe",
    "classifier",
    "coord_map",
    "detector",
    "draw",
    "io",
    "net_spec",
    "proto",
    "proto.caffe_pb2",
    "pycaffe",
)

for _name in _MODULES:
    sys.modules["caffe." + _name] = importlib.import_module("cafetiere." + _name)
sys.modules["caffe"] = cafetiere
