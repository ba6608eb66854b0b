# SPDX-License-Identifier: Apache-2.0
"""The page of the C interface: the comments and declarations of c_api.h, section by section."""

import re
import textwrap

from pages.comments import escaped

SECTION = re.compile(r"/\* -{4,} (.+?) -+ +\*/\n")
COMMENT = r"(?:(?!\*/).)*"
BLOCK = re.compile(
    rf"(?:/\* (?P<comment>{COMMENT}) \*/\n)?(?P<code>(?:[^/\n][^\n]*\n)+)"
    rf"|/\* (?P<note>{COMMENT}) \*/\n(?=\n)",
    re.DOTALL,
)
DECLARATION = re.compile(r"\bCFT_API ([^;]*;)")
ENDS = (".", ";", "}", "]")  # of a sentence or of JSON
JSON = re.compile(r"(?:[\w ]{1,12}: )?[\[{]+[\"{.]")
NAME = re.compile(r"\b(cft_\w+)\(|\}\s*(cft_\w+);|\(\*(cft_\w+)\)|#define (\w+)")


def page(root) -> str:
    """Markdown, from the header below `root`."""
    header = (root / "include/cafetiere/c_api.h").read_text()
    introduction, body = header.split("#ifndef CAFETIERE_C_API_H_", 1)
    text = ["# C interface\n\n", prose(introduction.split("*/", 1)[1].strip().strip("/* ")), "\n"]
    body = body.split('extern "C" {\n#endif\n', 1)[1].split("#ifdef __cplusplus")[0]
    titles = SECTION.split("/* ---- basics ---- */\n" + body)[1:]
    for title, part in zip(titles[::2], titles[1::2], strict=True):
        text.append(f"\n## {title[0].upper()}{title[1:]}\n")
        text += [entry(match) for match in BLOCK.finditer(part)]
    return "".join(text)


def entry(match: re.Match) -> str:
    """A declaration, or several that belong together, and their comment; or a comment alone."""
    if match["note"]:
        return f"\n{prose(match['note'])}"
    code, comment = match["code"].strip(), match["comment"]
    names = [next(filter(None, found)) for found in NAME.findall(code)]
    head = f"\n### {names[0]}\n" if names else ""
    head += "".join(f'\n<a id="{name}"></a>' for name in names[1:]) + "\n"
    code = DECLARATION.sub(lambda found: found[1].replace("\n" + " " * 8, "\n"), code)
    return f"{head}\n```c\n{code}\n```\n\n{prose(comment or '')}"


def prose(comment: str) -> str:
    """A comment without its stars; JSON and what is indented are blocks of text."""
    parts = []  # each: whether it is a block, and its lines
    goes_on, open_brackets = False, 0
    for line in (re.sub(r"^ ?\*? ?", "", line) for line in comment.splitlines()):
        block = goes_on or line.startswith("  ") or bool(JSON.match(line))
        if not parts or block != parts[-1][0]:
            parts.append((block, []))
            open_brackets = 0
        parts[-1][1].append(line)
        open_brackets += sum(map(line.count, "[{")) - sum(map(line.count, "]}"))
        goes_on = block and (open_brackets > 0 or not line.rstrip().endswith(ENDS))
    return "\n".join(shown(block, "\n".join(lines)) for block, lines in parts)


def shown(block: bool, text: str) -> str:
    """A part of a comment as Markdown."""
    if block:
        return f"```text\n{textwrap.dedent(text).strip()}\n```\n"
    return f"{escaped(text.strip())}\n"
