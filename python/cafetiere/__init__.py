# SPDX-License-Identifier: Apache-2.0
"""Cafetiere: reads Caffe's files and trains deep nets inside Spark executors.

Within this package nets and solvers run in the Python process, under the names that scripts for
Caffe use: `import cafetiere as caffe`. The native library is loaded when the first net, solver or
message is made. cafetiere.spark has the stages for Spark.
"""

from cafetiere import io
from cafetiere._library import Error, call_for_json
from cafetiere._settings import (
    NCCL,
    has_nccl,
    init_log,
    log,
    set_device,
    set_mode_cpu,
    set_mode_gpu,
    set_multiprocess,
    set_num_threads,
    set_random_seed,
    set_solver_count,
    set_solver_rank,
    solver_count,
    solver_rank,
)
from cafetiere._version import __version__ as __version__
from cafetiere.classifier import Classifier
from cafetiere.detector import Detector
from cafetiere.fine_tune import trainable
from cafetiere.layer import Layer
from cafetiere.net import TEST, TRAIN, Net
from cafetiere.net_spec import NetSpec, layers, params, to_proto
from cafetiere.onnx import export_onnx, import_onnx
from cafetiere.scorer import Scorer
from cafetiere.solver import (
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    AdamWSolver,
    LAMBSolver,
    NesterovSolver,
    RMSPropSolver,
    SGDSolver,
    get_solver,
)
from cafetiere.timer import Timer

__all__ = [
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "AdamWSolver",
    "Classifier",
    "Detector",
    "Error",
    "LAMBSolver",
    "Layer",
    "NCCL",
    "NesterovSolver",
    "Net",
    "NetSpec",
    "RMSPropSolver",
    "SGDSolver",
    "Scorer",
    "TEST",
    "TRAIN",
    "Timer",
    "export_onnx",
    "get_solver",
    "has_nccl",
    "import_onnx",
    "init_log",
    "io",
    "layer_type_list",
    "layers",
    "log",
    "params",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_multiprocess",
    "set_num_threads",
    "set_random_seed",
    "set_solver_count",
    "set_solver_rank",
    "solver_count",
    "solver_rank",
    "to_proto",
    "trainable",
]


def layer_type_list():
    """The names of all layer types, in alphabetical order."""
    return call_for_json("cft_layer_types")
