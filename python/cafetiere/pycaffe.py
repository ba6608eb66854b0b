# SPDX-License-Identifier: Apache-2.0
"""The names of Caffe's module `caffe.pycaffe`."""

from cafetiere._settings import NCCL
from cafetiere.net import Net
from cafetiere.solver import (
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    NesterovSolver,
    RMSPropSolver,
    SGDSolver,
)
from cafetiere.timer import Timer

__all__ = [
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "NCCL",
    "NesterovSolver",
    "Net",
    "RMSPropSolver",
    "SGDSolver",
    "Timer",
]
