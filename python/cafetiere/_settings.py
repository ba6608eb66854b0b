# SPDX-License-Identifier: Apache-2.0
"""What Caffe's interface sets for the whole process: mode, seed, threads, messages."""

import datetime
import logging
import os
import secrets
import sys
import warnings

from cafetiere import _cores

logger = logging.getLogger("cafetiere")
_GLOG_LEVEL = "GLOG_minloglevel"
_LEVELS = (logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


class _GlogFormatter(logging.Formatter):
    """Lines as glog writes them, which scripts for Caffe's logs read."""

    def format(self, record):
        at = datetime.datetime.fromtimestamp(record.created)
        severity = "IWEF"[_LEVELS.index(record.levelno)] if record.levelno in _LEVELS else "I"
        place = f"{at:%m%d %H:%M:%S.%f} {record.process:5} {record.name}:0"
        return f"{severity}{place}] {record.getMessage()}"


class _Settings:
    """The state behind set_mode_cpu(), set_random_seed() and their like."""

    def __init__(self):
        self.gpu_told = False
        self.seed = None
        self.nets = 0  # made since the seed was set
        self.threads = _cores.available()
        self.solver_count = 1
        self.solver_rank = 0
        self.multiprocess = False


settings = _Settings()


def next_seed():
    """The seed of the next net: a fresh one, or the next of those that follow from the seed set."""
    if settings.seed is None:
        return secrets.randbits(31)
    settings.nets += 1
    return (settings.seed + (settings.nets - 1) * 0x9E3779B1) % 2**31


def set_mode_cpu():
    """Computes on the CPU; what it does anyway."""


def set_mode_gpu():
    """Warns once that there is no GPU support yet; everything runs on the CPU."""
    if not settings.gpu_told:
        settings.gpu_told = True
        warnings.warn("there is no GPU support yet; nets run on the CPU", stacklevel=2)


def set_device(device):
    """Accepts the number of a GPU and warns once that it is not used."""
    int(device)
    set_mode_gpu()


def set_random_seed(seed):
    """Makes the nets that follow reproducible: their fillers and all that is random in a pass."""
    settings.seed, settings.nets = int(seed), 0


def set_num_threads(threads):
    """Threads for nets made from now on; by default one for each core that it may use."""
    if int(threads) < 1:
        raise ValueError("there must be at least one thread")
    settings.threads = int(threads)


def solver_count():
    """How many solvers work together, as set."""
    return settings.solver_count


def set_solver_count(count):
    """For scripts that call it; solvers do not work together through this interface."""
    settings.solver_count = int(count)


def solver_rank():
    """The solver's rank, as set."""
    return settings.solver_rank


def set_solver_rank(rank):
    """Kept for scripts; see set_solver_count()."""
    settings.solver_rank = int(rank)


def set_multiprocess(value):
    """Kept for scripts; see set_solver_count()."""
    settings.multiprocess = bool(value)


def has_nccl():
    """False: there is no GPU support yet."""
    return False


class NCCL:
    """Caffe's exchange of gradients between GPUs, which is not supported: creating one raises."""

    def __init__(self, solver, uid):
        self.new_uid()

    @staticmethod
    def new_uid():
        """Raises RuntimeError, which says what to use instead."""
        raise RuntimeError(
            "NCCL: there is no GPU support yet; processes train together by "
            "'cafetiere train --ranks N' or by cafetiere.spark"
        )


def init_log(level=logging.INFO, stderr=True):
    """Shows messages of at least `level`: 0 to 3 as in glog, or a level of logging."""
    logger.setLevel(_LEVELS[level] if 0 <= level < len(_LEVELS) else level)
    if stderr and not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_GlogFormatter())
        logger.addHandler(handler)


def log(text):
    """Writes a message among the engine's."""
    write(0, text)


def write(level, text):
    """Takes a message of the engine: 0 info, 1 warning, 2 error.

    Where nobody has set up logging they go to stderr, from GLOG_minloglevel on.
    """
    if not logger.hasHandlers():
        init_log(int(os.environ.get(_GLOG_LEVEL, "0")))
    logger.log(_LEVELS[level], "%s", text)
