#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints one JSON object: the peers' versions, and the instruction sets that they report."""

import json
import os
import re
import subprocess
import sys

CONVOLUTION = "import torch; torch.nn.Conv2d(16, 64, 3)(torch.rand(8, 16, 29, 29))"


def onednn_isa():
    """What oneDNN reports about itself when PyTorch calls it."""
    done = subprocess.run(
        [sys.executable, "-c", CONVOLUTION],
        env={**os.environ, "ONEDNN_VERBOSE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    isa = re.search(r"info,cpu,isa:(.*)", done.stdout)
    return isa[1].strip() if isa else "not told"


def main():
    """Prints the object."""
    import torch

    reports = {"torch": torch.__version__, "torch_cpu": torch.backends.cpu.get_cpu_capability()}
    print(json.dumps({**reports, "onednn": onednn_isa()}))


if __name__ == "__main__":
    main()
