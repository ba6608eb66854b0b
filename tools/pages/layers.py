# SPDX-License-Identifier: Apache-2.0
"""The page of layers: what their files say of them, and their fields in the schema."""

import re

from pages.comments import escaped

MESSAGE = re.compile(r"((?:^//[^\n]*\n)*)^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(
    r"((?:^ *//[^\n]*\n)*)^  (optional|repeated|required) ([\w.]+) (\w+) = \d+(?: \[(.*?)\])?;",
    re.MULTILINE | re.DOTALL,
)
ENUM = re.compile(r"^  enum (\w+) \{\n(.*?)^  \}", re.MULTILINE | re.DOTALL)
TYPE = re.compile(r'(?:\.name = |activation_type<\w+>\()"(\w+)"')
FORMULA = re.compile(r"\w+(?: = |\()")  # whose y is no Y
SHARED = (
    "FillerParameter",
    "ParamSpec",
    "TransformationParameter",
    "LossParameter",
)  # of many layers


def page(root) -> str:
    """Markdown, from the sources below `root`."""
    schema = (root / "core/model/proto/caffe.proto").read_text()
    messages = {name: (note, body) for note, name, body in MESSAGE.findall(schema)}
    fields = {name: kind for _, _, kind, name, _ in FIELD.findall(messages["LayerParameter"][1])}
    entries = {}
    for path in sorted((root / "core/layers").glob("*.cc")):
        text = path.read_text()
        for name in TYPE.findall(text):
            entries[name] = entry(name, text, headers(root, text), fields, messages)
    head = (
        "# Layers\n\nThe types that a net may name, what they compute, and the fields that shape"
        " them. `bottom` and `top` are a layer's inputs and outputs; shapes begin with the batch.\n"
    )
    layers = "".join(entries[name] for name in sorted(entries, key=str.lower))
    shared = "".join(
        f"\n### {name}\n\n{prose(messages[name][0])}\n\n{table(messages[name][1])}"
        for name in SHARED
    )
    return f"{head}{layers}\n## Messages that several layers take\n{shared}"


def headers(root, text: str) -> str:
    """The headers of layers that a file includes."""
    names = re.findall(r'#include "(core/layers/\w+\.h)"', text)
    return "".join((root / name).read_text() for name in names)


def fields_used(text: str, fields: dict[str, str]) -> list[str]:
    """The messages that code reads, by their fields in LayerParameter."""
    used = dict.fromkeys(re.findall(r"\b(\w+_param)\(\)", text))
    return [field for field in used if field in fields]


def entry(name: str, text: str, headers: str, fields: dict[str, str], messages: dict) -> str:
    """What there is to say of a type."""
    used = fields_used(text, fields) or fields_used(headers, fields)
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() + "_param"
    if snake in fields and snake not in used:
        used.append(snake)
    tables = [
        f"\n`{field}`:\n\n{table(messages[fields[field]][1])}"
        for field in used
        if fields[field] in messages and fields[field] not in SHARED
    ]
    head = text.partition("\n")[2]
    said = prose(head[: re.search(r"^(?!//)", head, re.MULTILINE).start()])
    said = re.sub(
        rf"^{name}(?: \(([^)]*)\))?: ", lambda found: f"{found[1]}: " if found[1] else "", said
    )
    if not FORMULA.match(said):
        said = said[:1].upper() + said[1:]
    return f"\n## {name}\n\n{said}\n{''.join(tables)}"


def shown(kind: str) -> str:
    """The type of a field, with a link where this page has it."""
    return f"[{kind}](#{kind.lower()})" if kind in SHARED else kind


def prose(comment: str) -> str:
    """The text of lines of a comment, as Markdown."""
    text = " ".join(line.strip().removeprefix("//").strip() for line in comment.splitlines())
    return escaped(text)


def table(body: str) -> str:
    """A message's fields."""
    enums = {name: re.findall(r"(\w+) = \d+", values) for name, values in ENUM.findall(body)}
    rows = []
    for note, many, kind, name, options in FIELD.findall(body):
        default = re.search(r"default = ([^,\]]+)", options or "")
        words = " · ".join(f"`{word}`" for word in enums.get(kind, [])) or shown(kind)
        words += ", any number" if many == "repeated" else ""
        rows.append((f"`{name}`", words, f"`{default[1]}`" if default else "", prose(note)))
    if not rows:
        return ""
    rows = [("field", "takes", "default", "meaning"), ("---",) * 4, *rows]
    columns = [column for column in zip(*rows, strict=True) if any(column[2:])]
    return "".join(f"| {' | '.join(row)} |\n" for row in zip(*columns, strict=True))
