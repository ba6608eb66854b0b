"""The names of Caffe's module `caffe.pycaffe`."""

from cafetiere.net import Net
from cafetiere.solver import (
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    NesterovSolver,
    RMSPropSolver,
    SGDSolver,
)

__all__ = [
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "NesterovSolver",
    "Net",
    "RMSPropSolver",
    "SGDSolver",
]
