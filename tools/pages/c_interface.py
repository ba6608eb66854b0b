# SPDX-License-Identifier: Apache-2.0
"""The page of the C interface: the comments and declarations of c_api.h, section by section."""

import re

from pages.comments import escaped

SECTION = re.compile(r"/\* -{4,} (.+?) -+ +\*/\n")
BLOCK = re.compile(r"(?:/\* (?P<comment>.*?) \*/\n)?(?P<code>(?:[^/\n][^\n]*\n)+)", re.DOTALL)
NAME = re.compile(r"\b(cft_\w+)\(|\}\s*(cft_\w+);|\(\*(cft_\w+)\)|#define (\w+)")


def page(root) -> str:
    """Markdown, from the header below `root`."""
    header = (root / "include/cafetiere/c_api.h").read_text()
    introduction, body = header.split("#ifndef CAFETIERE_C_API_H_", 1)
    text = ["# C interface\n\n", prose(introduction.split("*/", 1)[1].strip().strip("/* ")), "\n"]
    body = body.split('extern "C" {\n#endif\n', 1)[1].split("#ifdef __cplusplus")[0]
    titles = SECTION.split("/* ---- basics ---- */\n" + body)[1:]
    for title, part in zip(titles[::2], titles[1::2], strict=True):
        text.append(f"\n## {title.capitalize()}\n")
        text += [entry(match) for match in BLOCK.finditer(part)]
    return "".join(text)


def entry(match: re.Match) -> str:
    """A declaration, or several that belong together, and their comment."""
    code, comment = match["code"].strip(), match["comment"]
    names = [next(filter(None, found)) for found in NAME.findall(code)]
    head = f"\n### {names[0]}\n" if names else ""
    head += "".join(f'\n<a id="{name}"></a>' for name in names[1:]) + "\n"
    return f"{head}\n```c\n{code.replace('CFT_API ', '')}\n```\n\n{prose(comment or '')}"


def prose(comment: str) -> str:
    """A comment without its stars; from the line on in which JSON begins, as it stands."""
    lines = [re.sub(r"^ ?\*? ?", "", line) for line in comment.splitlines()]
    first = next((i for i, line in enumerate(lines) if '{"' in line or "{." in line), len(lines))
    text = escaped("\n".join(lines[:first]).strip())
    rest = "\n".join(lines[first:]).strip()
    return text + "\n" + (f"\n```text\n{rest}\n```\n" if rest else "")
