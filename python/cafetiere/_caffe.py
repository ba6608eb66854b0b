# SPDX-License-Identifier: Apache-2.0
"""The names of Caffe's module `caffe._caffe`."""

from cafetiere import (
    NCCL,
    get_solver,
    has_nccl,
    init_log,
    layer_type_list,
    log,
    set_device,
    set_mode_cpu,
    set_mode_gpu,
    set_multiprocess,
    set_random_seed,
    set_solver_count,
    set_solver_rank,
    solver_count,
    solver_rank,
)
from cafetiere.blob import Blob, BlobVec
from cafetiere.layer import Layer
from cafetiere.net import Net
from cafetiere.timer import Timer

__all__ = [
    "Blob",
    "BlobVec",
    "Layer",
    "NCCL",
    "Net",
    "Timer",
    "get_solver",
    "has_nccl",
    "init_log",
    "layer_type_list",
    "log",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_multiprocess",
    "set_random_seed",
    "set_solver_count",
    "set_solver_rank",
    "solver_count",
    "solver_rank",
]
