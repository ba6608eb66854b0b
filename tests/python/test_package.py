# SPDX-License-Identifier: Apache-2.0
"""The package as a whole."""

import pathlib
import subprocess
import tomllib

from cafetiere import __version__

ROOT = pathlib.Path(__file__).parents[2]


def test_version_is_the_projects():
    assert tomllib.loads((ROOT / "project.toml").read_text())["version"] == __version__


def test_no_other_file_states_the_version():
    # Documents must name it, others' libraries may have the same, and tools/params names the first.
    aside = [":!*.md", ":!tools/requirements*.txt", ":!tools/third_party.toml", ":!tools/params"]
    command = ["git", "grep", "-lIwF", __version__, "--", *aside]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["project.toml"]
