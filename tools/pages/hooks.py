# SPDX-License-Identifier: Apache-2.0
"""What MkDocs cannot do by itself: the README as the first page, pages made from sources, and links to
what lies outside docs/, which the site then holds too.
"""

import functools
import pathlib
import subprocess

from mkdocs.structure.files import File
from pages import c_interface, layers, links, programs

ROOT = pathlib.Path(__file__).resolve().parents[2]
MADE = {
    "reference/layers.md": layers.page,
    "reference/c.md": c_interface.page,
    "reference/cafetiere.md": programs.page,
}


@functools.cache
def tracked() -> frozenset[str]:
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    return frozenset(names.stdout.decode().rstrip("\0").split("\0"))


def on_files(files, config):
    for name, page in MADE.items():
        files.append(File.generated(config, name, content=page(ROOT)))
    wanted, seen = ["README.md", *(f"docs/{file.src_uri}" for file in files)], set()
    while wanted:  # what pages link to, and what those link to
        name = wanted.pop()
        if name in seen or not name.endswith(".md") or name.removeprefix("docs/") in MADE:
            continue
        seen.add(name)
        text, targets = links.rewritten((ROOT / name).read_text(), name, tracked())
        wanted += targets
        for target in [name, *targets]:
            place = links.place(target, tracked())
            if files.get_file_from_path(place) is None:
                files.append(outside(target, place, config))
    return files


def outside(name: str, place: str, config) -> File:
    """A file of the tree, or a page that lists a folder, at its place in the site."""
    path = ROOT / name
    if path.is_dir():
        inside = [file for file in tracked() if file.startswith(name + "/")]
        titles = {file: title(ROOT / file) if file.startswith("docs/") else "" for file in inside}
        return File.generated(config, place, content=links.listing(name, titles))
    return File.generated(config, place, content=path.read_bytes())


def title(path: pathlib.Path) -> str:
    return path.read_text().partition("\n")[0].lstrip("# ") if path.suffix == ".md" else ""


def on_page_markdown(markdown, page, config, files):
    source = links.source(page.file.src_uri)
    if source.removeprefix("docs/") in MADE or not (ROOT / source).is_file():
        return markdown
    return links.rewritten(markdown, source, tracked())[0]
