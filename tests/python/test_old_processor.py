# SPDX-License-Identifier: Apache-2.0
"""A processor without AVX2 gets a sentence: from the program, C, Python and Java, never SIGILL."""

import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
import sys

import pytest
from program import PROGRAM, ROOT, needs_the_program
from test_loading import JAR, compiled, needs_a_jar

QEMU = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")
SENTENCE = "this processor lacks AVX2, FMA or BMI"
# What a function may use before the processor has been looked at: nothing that came after SSE.
NEWER = re.compile(r"%[yz]mm|\tv[a-z]|\t(?:shlx|shrx|sarx|rorx|mulx|andn|bzhi|pdep|pext|movbe)")

pytestmark = [
    needs_the_program,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has AVX2"),
]
# The functions that need no object of ours.
ENTRIES = (
    r"^CFT_API int (cft_\w+_create|cft_describe|cft_report|cft_schema|cft_layer_types"
    r"|cft_use_instruction_set)\("
)
needs_qemu = pytest.mark.skipif(
    QEMU is None, reason="no emulator of older processors: install qemu-user-static"
)


def library():
    return PROGRAM.parents[1] / "lib/libcafetiere.so"


def run(processor, *command, code=0, **environment):
    """What a command prints on an emulated processor."""
    done = subprocess.run(
        [QEMU, "-cpu", processor, *map(str, command)],
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


@needs_qemu
@pytest.mark.parametrize("command", ["version", "train", "device_query", "no such command"])
def test_the_program(command):
    assert SENTENCE in run("Nehalem", PROGRAM, command, code=1)


@needs_qemu
def test_a_processor_that_has_it_works():
    assert run("max", PROGRAM, "version").startswith("cafetiere version ")


# Calls every function that needs no object, through whatever is compiled for AVX2.
CALLS = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
library.cft_last_error.restype = library.cft_version.restype = ctypes.c_char_p
library.cft_instruction_set.restype = ctypes.c_char_p
errors = {}
for name in sys.argv[2:]:
    call, out = getattr(library, name), ctypes.c_void_p()
    assert call(b"{}", ctypes.byref(out), ctypes.byref(out)) != 0, name
    errors[name] = library.cft_last_error().decode()
told = {"version": library.cft_version(), "set": library.cft_instruction_set()}
print(json.dumps([errors, {key: value.decode() for key, value in told.items()}]))
"""


@needs_qemu
def test_the_c_interface():
    header = (ROOT / "include/cafetiere/c_api.h").read_text()
    entries = re.findall(ENTRIES, header, re.MULTILINE)
    assert len(entries) >= 10
    answer = run("Nehalem", sys.executable, "-c", CALLS, library(), *entries)
    errors, told = json.loads(answer)
    assert {name for name, error in errors.items() if not error.startswith(SENTENCE)} == set()
    assert told["set"] == "generic"
    ours = ctypes.CDLL(library())
    ours.cft_version.restype = ctypes.c_char_p
    assert told["version"] == ours.cft_version().decode()


@needs_qemu
def test_the_python_package():
    """With AVX, which numpy's own wheel needs, and without AVX2."""
    script = "import cafetiere\ncafetiere.layer_type_list()"
    answer = run("SandyBridge", sys.executable, "-c", script, code=1, PYTHONPATH=ROOT / "python")
    assert SENTENCE in answer.splitlines()[-1]


@needs_qemu
@needs_a_jar
def test_the_jvm(tmp_path):
    path = f"{JAR}:{compiled(tmp_path, 'Alone')}"
    answer = run("Nehalem", shutil.which("java"), "-Xmx256m", "-cp", path, "Alone", code=1)
    assert f"cafetiere.core.CafetiereException: {SENTENCE}" in answer


def functions_with(pattern, wanted):
    """The functions of the library whose names are wanted, and what matches in each."""
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", library()],
        text=True,
        capture_output=True,
        check=True,
    ).stdout
    found = {}
    for block in listing.split("\n\n"):
        name = re.match(r"[0-9a-f]+ <(.*)>:$", block.lstrip("\n").partition("\n")[0])
        if name and wanted.search(name.group(1)):
            found[name.group(1)] = [line for line in block.splitlines() if pattern.search(line)]
    return found


def test_what_runs_on_loading_needs_no_new_instruction():
    initialisers = functions_with(NEWER, re.compile(r"_GLOBAL__sub_I|^ignore_configuration$"))
    assert len(initialisers) > 20
    assert {name: lines for name, lines in initialisers.items() if lines} == {}


def test_the_engine_does_use_them():
    """Otherwise the test above would prove nothing."""
    assert any(functions_with(NEWER, re.compile("cafetiere.*layer", re.IGNORECASE)).values())
