# SPDX-License-Identifier: Apache-2.0
"""What MkDocs cannot do by itself: the README as the first page, pages made from sources, notebooks
as pages, and links to what lies outside docs/, which the site then holds too.
"""

import functools
import pathlib
import re
import subprocess

from mkdocs.structure.files import File

from pages import c_interface, layers, links, notebooks, programs

ROOT = pathlib.Path(__file__).resolve().parents[2]
MADE = {
    "reference/layers.md": layers.page,
    "reference/c.md": c_interface.page,
    "reference/cafetiere.md": programs.page,
}
CODE = re.compile(r"(?<!<pre>)(?<!<pre><span></span>)<code>([^<]*)</code>")  # not of blocks
WORD = re.compile(r"[^\s<>]+")
PARTS = re.compile(r"(?:(?<!&)#|::|/|(?<=\w{4})\.)(?=\w{4})")  # of names of tests, and of paths


@functools.cache
def tracked() -> frozenset[str]:
    """The tree's files, those too that are not committed yet."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return frozenset(names.stdout.decode().rstrip("\0").split("\0"))


def on_files(files, config):
    """Adds what is not in docs/, or not as a page."""
    for name, page in MADE.items():
        files.append(File.generated(config, name, content=page(ROOT)))
    wanted = ["README.md"]
    names = [f"docs/{file.src_uri}" for file in files]
    wanted += [name for name in names if (ROOT / name).is_file()]
    for path in sorted((ROOT / "docs").rglob("*.ipynb")):
        name = path.relative_to(ROOT / "docs").with_suffix(".md").as_posix()
        text, targets = links.rewritten(notebooks.page(path), f"docs/{name}", tracked())
        files.append(File.generated(config, name, content=text))
        wanted += targets
    seen = set()
    while wanted:  # what pages link to, and what those link to
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        if links.inner_page(name, tracked()) == "README.md":
            wanted.append(f"{name}/README.md")
            continue
        wanted += inside(name)
        place = links.place(name, tracked())
        if files.get_file_from_path(place) is None:
            files.append(outside(name, place, config))
        if name.endswith(".md") and (ROOT / name).is_file():
            wanted += links.rewritten((ROOT / name).read_text(), name, tracked())[1]
    return files


def inside(folder: str) -> list[str]:
    """The files below a folder of the tree; none of a file."""
    return [file for file in tracked() if file.startswith(folder + "/")]


def outside(name: str, place: str, config) -> File:
    """A file of the tree, or a page that lists a folder, at its place in the site."""
    path = ROOT / name
    if path.is_dir():
        titles = {file: title(ROOT / file) for file in inside(name)}
        return File.generated(config, place, content=links.listing(name, titles))
    return File.generated(config, place, content=path.read_bytes())


def title(path: pathlib.Path) -> str:
    """Of a page; "" of another file."""
    return path.read_text().partition("\n")[0].lstrip("# ") if path.suffix == ".md" else ""


def on_page_markdown(markdown, page, config, files):
    """The page with its links as the site needs them."""
    source = links.source(page.file.src_uri)
    made = not (ROOT / source).is_file()
    return markdown if made else links.rewritten(markdown, source, tracked())[0]


def on_page_content(html, page, config, files):
    """The page with code that breaks where readers expect it, not after the hyphens of flags."""
    return CODE.sub(lambda code: f"<code>{WORD.sub(breaking, code[1])}</code>", html)


def breaking(word: re.Match) -> str:
    """A short word with a hyphen in one piece, for site.css; a long one with places to break."""
    if len(word[0]) > 30:
        return PARTS.sub(r"\g<0><wbr>", word[0])
    return f'<span class="whole">{word[0]}</span>' if "-" in word[0] else word[0]
