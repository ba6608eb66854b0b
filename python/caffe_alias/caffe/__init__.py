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
globals().update((name, value) for name, value in vars(cafetiere).items() if name[:2] != "__")

__all__ = cafetiere.__all__
__version__ = "1.0.0"  # the Caffe whose interface this is, which scripts ask for
