# SPDX-License-Identifier: Apache-2.0
"""The page of the program: what its commands say of themselves."""

import re
import subprocess

COMMAND = re.compile(r"^  (\w+) {2,}(.+)$", re.MULTILINE)


def page(root) -> str:
    """Markdown, from the program that tools/build has built below `root`."""
    program = root / "build/release/cli/cafetiere"
    text = ["# The program `cafetiere`\n\nFlags take one dash or two, as in Caffe.\n"]
    commands = said(program, "--help").split("Subcommands:")[1]
    for name, what in COMMAND.findall(commands):
        text.append(f"\n## {name}\n\n{what[0].upper()}{what[1:]}.\n\n")
        usage = said(program, name, "--help").strip().partition("\n")[2]  # after the line of above
        text.append(f"```text\n{usage}\n```\n")
    return "".join(text)


def said(program, *arguments: str) -> str:
    """What the program prints."""
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout
