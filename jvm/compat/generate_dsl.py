#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cafetiere.dsl's case classes from caffe.proto: one a layer type of layers.txt, and one a
message that a net or a solver holds.

    jvm/compat/generate_dsl.py LAYERS PROTO OUT

LAYERS is layers.txt, OUT a folder. What the classes do, Codec.scala does for all of them. Quick
when they are there already.
"""

import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

Kind = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    Kind.TYPE_STRING: "String",
    Kind.TYPE_BOOL: "Boolean",
    Kind.TYPE_INT32: "Int",
    Kind.TYPE_UINT32: "Int",
    Kind.TYPE_INT64: "Long",
    Kind.TYPE_FLOAT: "Float",
    Kind.TYPE_DOUBLE: "Double",
}
# What messages are called where the word Parameter, cut off, does not leave the right name.
NAMES = {
    "NetParameter": "Net",
    "TransformationParameter": "Transformation",
    "AnnotatedDataParameter": "Annotations",  # the layer has the other name
}
# What files from before LayerParameter hold, and weights: no part of the language.
LEFT_OUT = {"NetParameter": {"layers"}, "LayerParameter": {"blobs"}}
# The fields that every layer has, after name, bottom and top.
COMMON = ("loss_weight", "param", "include", "exclude", "phase", "propagate_down")
KEYWORDS = {"type"}
HEADER = """// SPDX-License-Identifier: Apache-2.0
// Written by generate_dsl.py.
package cafetiere.dsl

import caffe.{Caffe => Proto}

"""


def camel(name: str) -> str:
    """A field's name in Scala."""
    first, *others = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def title(name: str) -> str:
    """An enum value's name in Scala: ACROSS_CHANNELS is AcrossChannels."""
    return "".join(word.capitalize() for word in name.split("_"))


def quoted(name: str) -> str:
    """A name that may be a word of Scala's."""
    return f"`{name}`" if name in KEYWORDS else name


@dataclasses.dataclass
class Argument:
    """An argument of a case class and the path of proto fields that it fills."""

    name: str
    type: str
    default: str  # "" where it must be given
    path: tuple[str, ...]
    doc: str = ""

    def declared(self, with_default: bool) -> str:
        """As a parameter."""
        default = f" = {self.default}" if with_default and self.default else ""
        return f"{quoted(self.name)}: {self.type}{default}"

    def read(self, index: int) -> str:
        """The argument out of what Codec has read."""
        if self.default:
            return f"a({index}).asInstanceOf[{self.type}]"
        return f'Codec.needed[{self.type}](a({index}), "{self.name}")'


class Schema:
    """The messages and enums of a .proto file."""

    def __init__(self, proto: pathlib.Path):
        with tempfile.NamedTemporaryFile() as file:
            options = ["--include_source_info", f"--descriptor_set_out={file.name}"]
            subprocess.run(["protoc", *options, "-I", proto.parent, proto], check=True)
            [self.file] = descriptor_pb2.FileDescriptorSet.FromString(file.read()).file
        self.messages = {}
        for message in self.file.message_type:
            self.messages[message.name] = message
            for inner in message.nested_type:
                self.messages[f"{message.name}.{inner.name}"] = inner
        self.comments = {
            self.file.message_type[place.path[1]].name: " ".join(place.leading_comments.split())
            for place in self.file.source_code_info.location
            if len(place.path) == 2 and place.path[0] == 4 and place.leading_comments
        }

    def field(self, message: str, name: str) -> Kind:
        """A field by its name."""
        return next(f for f in self.messages[message].field if f.name == name)

    def scala_type(self, field: Kind) -> str:
        """The type of one value of a field."""
        if field.type in SCALARS:
            return SCALARS[field.type]
        inside = field.type_name.removeprefix(".caffe.")
        if field.type == Kind.TYPE_ENUM:
            return f"Proto.{inside}"
        return "Layer" if inside == "LayerParameter" else class_name(inside)

    def argument(self, field: Kind, path: tuple[str, ...]) -> Argument:
        """The argument that fills a field."""
        scala, name = self.scala_type(field), camel(field.name)
        if field.label == Kind.LABEL_REPEATED:
            return Argument(name, f"Seq[{scala}]", "Nil", path)
        if field.label == Kind.LABEL_REQUIRED:
            return Argument(name, scala, "", path)
        doc = f"{field.default_value} where it is unset" if field.default_value else ""
        return Argument(name, f"Field[{scala}]", "Unset", path, doc)


def class_name(message: str) -> str:
    """The case class of a message."""
    plain = message.rsplit(".", 1)[-1]
    return NAMES.get(plain, plain.removesuffix("Parameter"))


def enums(schema: Schema, message: str) -> str:
    """An object for each enum of a message, with its values."""
    text = ""
    for enum in schema.messages[message].enum_type:
        java = f"Proto.{message}.{enum.name}"
        text += f"  object {enum.name} {{\n"
        for value in enum.value:
            text += f"    val {title(value.name)}: {java} = {java}.{value.name}\n"
        text += "  }\n"
    return text


def case_class(
    name: str, doc: str, message: str, args: list[Argument], companion: str, parent: str
) -> str:
    """A case class that Codec reads and writes, made by its companion's apply."""
    needed = [arg for arg in args if not arg.default]
    lines = [doc.rstrip(".") + "."] if doc else []
    lines += [f"@param {arg.name} {arg.doc}" for arg in args if arg.doc]
    text = "/** " + "\n  * ".join(line.replace("*/", "* /") for line in lines) + "\n  */\n"
    ordered = needed + [arg for arg in args if arg.default]
    text += f"final case class {name} private[dsl] (\n    "
    text += ",\n    ".join(arg.declared(False) for arg in ordered)
    text += f"\n) extends {parent} {{\n  private[dsl] def companion = {name}\n}}\n\n"
    text += f"object {name} extends {companion} {{\n  def apply(\n      "
    text += ",\n      ".join(arg.declared(True) for arg in ordered)
    given = [
        f"Tops.of(top, {quoted('name')})" if arg.default == "Tops.ByName" else quoted(arg.name)
        for arg in ordered
    ]
    text += f"\n  ): {name} =\n    new {name}({', '.join(given)})\n\n"
    reads = ", ".join(arg.read(i) for i, arg in enumerate(ordered))
    text += f"  private[dsl] def from(a: Array[Any]): {name} = new {name}({reads})\n"
    paths = ", ".join('"' + ".".join(arg.path) + '"' for arg in ordered)
    codec = f"new Codec(Proto.{message}.getDefaultInstance, Seq({paths}))"
    text += f"  private[dsl] lazy val codec = {codec}\n"
    return text


def layer(schema: Schema, kind: str, own: str, shared: list[str]) -> str:
    """The case class of a layer type."""
    layers = "LayerParameter"
    args = [
        Argument("name", "String", "", ("name",)),
        Argument("bottom", "Seq[String]", "Nil", ("bottom",)),
        Argument("top", "Seq[String]", "Tops.ByName", ("top",)),
    ]
    doc, message = f"A layer of type {kind}", ""
    if own:
        message = schema.field(layers, own).type_name.removeprefix(".caffe.")
        doc = schema.comments.get(message, doc)
        taken = {"name", "bottom", "top", *map(camel, COMMON)}
        for field in schema.messages[message].field:
            arg = schema.argument(field, (own, field.name))
            if arg.name in taken:
                held_class = schema.scala_type(field)
                arg.name = held_class[:1].lower() + held_class[1:]
            args.append(arg)
    for name in (*shared, *COMMON):
        args.append(schema.argument(schema.field(layers, name), (name,)))
    text = case_class(kind, doc, layers, args, f'LayerType[{kind}]("{kind}")', "Layer")
    return text + (enums(schema, message) if message else "") + "}\n"


def message_class(schema: Schema, message: str) -> str:
    """The case class of a message that layers, nets or solvers hold."""
    left_out = LEFT_OUT.get(message, set())
    fields = [f for f in schema.messages[message].field if f.name not in left_out]
    args = [schema.argument(field, (field.name,)) for field in fields]
    name = class_name(message)
    doc = schema.comments.get(message, name)
    text = case_class(
        name,
        doc,
        message,
        args,
        f"MessageType[{name}, Proto.{message}]",
        f"Message[Proto.{message}]",
    )
    return text + enums(schema, message) + "}\n"


def held(schema: Schema, roots: list[str]) -> list[str]:
    """The roots and the messages that they hold, but for layers and what only these hold."""
    found, todo = [], list(roots)
    while todo:
        message = todo.pop(0)
        if message in found or message in ("LayerParameter", "V1LayerParameter"):
            continue
        found.append(message)
        left_out = LEFT_OUT.get(message, set())
        todo += [
            field.type_name.removeprefix(".caffe.")
            for field in schema.messages[message].field
            if field.type == Kind.TYPE_MESSAGE and field.name not in left_out
        ]
    return found


def main() -> None:
    """Entry point."""
    layers, proto, out = map(pathlib.Path, sys.argv[1:])
    made, inputs = out / "LayerTypes.scala", (layers, proto, pathlib.Path(__file__))
    if made.exists() and made.stat().st_mtime > max(path.stat().st_mtime for path in inputs):
        return
    schema = Schema(proto)
    rows = [line.split() for line in layers.read_text().splitlines() if not line.startswith("#")]
    texts, roots = {}, ["NetParameter", "SolverParameter"]
    for kind, *params in rows:
        own = params[0] if params and params[0] != "-" else ""
        texts[kind] = layer(schema, kind, own, params[1:])
        if own:
            inside = schema.field("LayerParameter", own).type_name.removeprefix(".caffe.")
            roots += [
                f.type_name.removeprefix(".caffe.")
                for f in schema.messages[inside].field
                if f.type == Kind.TYPE_MESSAGE
            ]
        for name in (*params[1:], *COMMON):
            field = schema.field("LayerParameter", name)
            if field.type == Kind.TYPE_MESSAGE:
                roots.append(field.type_name.removeprefix(".caffe."))
    messages = held(schema, roots)
    parts = {"Layers": texts.values(), "Messages": [message_class(schema, m) for m in messages]}
    all_types = (
        "private[dsl] object LayerTypes {\n  val all: Seq[LayerType[_ <: Layer]] = Seq(\n    "
    )
    all_types += ",\n    ".join(texts) + ")\n}\n\n"
    all_types += (
        "private[dsl] object MessageTypes {\n  val all: Seq[MessageType[_, _]] = Seq(\n    "
    )
    all_types += ", ".join(map(class_name, messages)) + ")\n}\n"
    parts["LayerTypes"] = [all_types]
    out.mkdir(parents=True, exist_ok=True)
    for name, classes in parts.items():
        text = HEADER + "\n".join(classes)
        (out / f"{name}.scala").write_text(re.sub(r"\n\n\n+", "\n\n", text))


if __name__ == "__main__":
    main()
