# SPDX-License-Identifier: Apache-2.0
"""The messages and enums of caffe.proto: NetParameter, LayerParameter, BlobProto, Datum, TRAIN, ...

They are made from the schema that the engine itself reads files with, when the first of them is
asked for. Needs the package protobuf.
"""

import functools
from enum import IntEnum

from cafetiere._library import call_for_bytes


@functools.cache
def _names():
    """All top-level messages, enums and enum values by name."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto.FromString(call_for_bytes("cft_schema"))
    pool = descriptor_pool.DescriptorPool()  # its own: another schema of that name may be loaded
    pool.AddSerializedFile(file.SerializeToString())
    schema = pool.FindFileByName(file.name)
    names = {"DESCRIPTOR": schema}
    for name, message in schema.message_types_by_name.items():
        names[name] = message_factory.GetMessageClass(message)
    for name, enum in schema.enum_types_by_name.items():
        names[name] = IntEnum(name, {value.name: value.number for value in enum.values})
        names.update(names[name].__members__)
    return names


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return _names()[name]
    except KeyError:
        raise AttributeError(f"caffe.proto has no '{name}'") from None


def __dir__():
    return sorted(_names())
