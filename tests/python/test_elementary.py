# SPDX-License-Identifier: Apache-2.0
"""What computes weights asks libm for nothing that its releases round differently."""

import re
import subprocess
from pathlib import Path

import pytest

OBJECTS = Path(__file__).resolve().parents[2] / "build/release/core/CMakeFiles"
FOLDERS = ("device", "graph", "layers", "plan", "solver", "sync", "train")
INEXACT = re.compile(
    r"exp|exp2|expm1|log|log2|log10|log1p|pow|sinh?|cosh?|tanh?|erfc?|l?gamma|cbrt"
)


def undefined_names(folder):
    """The functions that a folder's objects take from elsewhere."""
    objects = list((OBJECTS / f"cft_{folder}.dir").rglob("*.o"))
    assert objects, f"no objects of core/{folder}"
    listing = subprocess.run(
        ["nm", "-u", *objects], text=True, capture_output=True, check=True
    ).stdout
    return {line.split()[1] for line in listing.splitlines() if line.startswith(" ")}


@pytest.mark.skipif(not OBJECTS.is_dir(), reason="no build in build/release")
@pytest.mark.parametrize("folder", FOLDERS)
def test_no_inexact_function_of_libm(folder):
    names = undefined_names(folder)
    assert names & {"memcpy", "memset", "memmove", "_Znwm"}, "nm tells nothing"
    assert {n for n in names if INEXACT.fullmatch(n.removesuffix("f"))} == set()
