# SPDX-License-Identifier: Apache-2.0
"""What the package tells ctypes of the native library, and how it reads the library's errors."""

import ctypes
import pathlib
import re

import pytest

import cafetiere as caffe
from cafetiere._library import library

ROOT = pathlib.Path(__file__).parents[2]
HEADER = re.sub(r"/\*.*?\*/", "", (ROOT / "include/cafetiere/c_api.h").read_text(), flags=re.DOTALL)
NUMBERS = {
    "int": ctypes.c_int, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64, "float": ctypes.c_float,
}  # fmt: skip


def arguments(function):
    """Of a function in the header: the types of numbers, None for pointers."""
    declared = re.search(rf"CFT_API [^;(]*\b{function}\(([^)]*)\);", HEADER)[1]
    types = [argument.strip() for argument in declared.split(",") if argument.strip() != "void"]
    return [None if "*" in each else NUMBERS[each.split()[0]] for each in types]


def test_sizes_and_numbers_have_the_types_of_the_header():
    called = set()
    for path in (ROOT / "python/cafetiere").rglob("*.py"):
        called |= set(re.findall(r"\bcft_\w+(?=\"|\()", path.read_text(encoding="utf-8")))
    assert len(called) > 40
    for name in called:
        told = getattr(library(), name).argtypes
        numbers = [None if kind not in NUMBERS.values() else kind for kind in told]
        assert numbers == arguments(name), name


def test_an_error_may_name_a_file_in_another_encoding(work):
    (work / "list.txt").write_bytes(b"caf\xe9.h5\n")
    source = 'hdf5_data_param { source: "list.txt" batch_size: 1 }'
    (work / "net.prototxt").write_text(f'layer {{ name: "d" type: "HDF5Data" top: "x" {source} }}')
    with pytest.raises(caffe.Error, match="caf\ufffd.h5"):
        caffe.Net("net.prototxt", caffe.TEST)
