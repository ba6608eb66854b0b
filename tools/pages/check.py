# SPDX-License-Identifier: Apache-2.0
"""Fails where a page of a site leads nowhere, or fetches something from elsewhere.

python check.py FOLDER
"""

import html.parser
import pathlib
import sys
import urllib.parse

FETCHED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src")}


class Page(html.parser.HTMLParser):
    """A page's own anchors, and what it links to or fetches."""

    def __init__(self, path: pathlib.Path):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        """Takes note of an anchor and a link."""
        attributes = dict(attrs)
        self.anchors |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        for key in ("href", "src"):
            if attributes.get(key):
                fetched = (tag, key) in FETCHED and attributes.get("rel") not in ("canonical",)
                self.links.append((attributes[key], fetched))


def faults(folder: pathlib.Path) -> list[str]:
    """What is wrong, a line each."""
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for link, fetched in page.links:
            parts = urllib.parse.urlsplit(link)
            where = f"{path.relative_to(folder.resolve())}: {link}"
            if parts.scheme or parts.netloc:
                if fetched and parts.scheme != "data":
                    found.append(f"{where} is fetched from elsewhere")
                continue
            target = path.parent / urllib.parse.unquote(parts.path) if parts.path else path
            target = target.resolve()
            if not target.exists():
                found.append(f"{where} leads nowhere")
                continue
            place = urllib.parse.unquote(parts.fragment)
            if place and target in pages and place not in pages[target].anchors | {"__top"}:
                found.append(f"{where} has no such place")
    return found


if __name__ == "__main__":
    problems = faults(pathlib.Path(sys.argv[1]))
    sys.exit("\n".join(problems) if problems else 0)
