# SPDX-License-Identifier: Apache-2.0
"""The package's version, read from the source tree's project.toml.

python/build_wheel writes the version itself here: a wheel has no project.toml.
"""

import pathlib
import re

_text = (pathlib.Path(__file__).resolve().parents[2] / "project.toml").read_text(encoding="utf-8")
__version__ = re.findall('^version = "(.*)"$', _text, re.MULTILINE)[0]
