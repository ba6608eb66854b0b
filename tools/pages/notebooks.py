# SPDX-License-Identifier: Apache-2.0
"""A notebook as a page: its text, and its code as blocks."""

import json


def page(path) -> str:
    """Markdown, from a notebook without outputs; a link to the notebook stands below its title."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\n[The notebook]({path.name}){{ download }}\n{rest}\n"
