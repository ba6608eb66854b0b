# SPDX-License-Identifier: Apache-2.0
"""Where a file of the tree lies in the site, and links between the two."""

import posixpath
import re

# Neither of another host nor within the page.
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)\s#]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
TREE = "tree/"  # of the site: what lies outside docs/


def place(name: str, tracked: frozenset[str]) -> str:
    """The site's path of a file or folder of the tree."""
    if name == "README.md":
        return "index.md"
    path = name if name in tracked else f"{name}/{inner_page(name, tracked)}"
    if name.startswith("docs/"):
        return path.removeprefix("docs/")
    return TREE + path.lstrip(".")  # MkDocs leaves out what begins with a dot


def inner_page(folder: str, tracked: frozenset[str]) -> str:
    """The file that a folder's link leads to: its README, or a list of what is in it."""
    return "README.md" if f"{folder}/README.md" in tracked else "index.md"


def source(place: str) -> str:
    """The other way round; of pages that are made, a name under docs/."""
    if place == "index.md":
        return "README.md"
    return place.removeprefix(TREE) if place.startswith(TREE) else f"docs/{place}"


def rewritten(text: str, name: str, tracked: frozenset[str]) -> tuple[str, list[str]]:
    """Markdown of the file `name` with its links as the site needs them, and what they lead to.

    A link to what the tree does not hold stays as it is: MkDocs then says so.
    """
    targets = []
    here = posixpath.dirname(place(name, tracked | {name}))

    def changed(match: re.Match) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[2]))
        if not any(file == target or file.startswith(target + "/") for file in tracked):
            return match[0]
        targets.append(target)
        return match[1] + posixpath.relpath(place(target, tracked), here or ".") + match[3]

    parts = FENCE.split(text)
    parts[::2] = [LINK.sub(changed, part) for part in parts[::2]]
    return "".join(parts), targets


def listing(folder: str, titles: dict[str, str]) -> str:
    """A page with links to a folder's files, the pages among them by their titles."""
    lines = []
    for name in sorted(titles):
        inner = name.removeprefix(folder + "/")
        lines.append(f"- [{titles[name] or f'`{inner}`'}]({inner})\n")
    heading = posixpath.basename(folder).capitalize() if folder.startswith("docs/") else folder
    return f"# {heading}\n\n" + "".join(lines)
