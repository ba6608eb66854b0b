# SPDX-License-Identifier: Apache-2.0
"""The package as a whole."""

import pathlib
import re

import cafetiere

ROOT = pathlib.Path(__file__).parents[2]


def test_version_is_the_projects():
    text = (ROOT / "CMakeLists.txt").read_text()
    assert re.search(r"project\(cafetiere VERSION ([\d.]+)", text).group(1) == cafetiere.__version__
