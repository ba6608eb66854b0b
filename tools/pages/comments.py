# SPDX-License-Identifier: Apache-2.0
"""Text of comments in sources as Markdown."""

import re

CODE_OR_MARK = re.compile(r"(`[^`]*`)|([<>_*\[\]|])")
ENTITIES = {"<": "&lt;", ">": "&gt;"}  # Python-Markdown knows no \<


def escaped(text: str) -> str:
    """Text that Markdown shows as it stands; what is between backticks stays code, untouched."""
    return CODE_OR_MARK.sub(lambda found: found[1] or ENTITIES.get(found[2], f"\\{found[2]}"), text)
