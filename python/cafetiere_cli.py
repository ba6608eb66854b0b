# SPDX-License-Identifier: Apache-2.0
"""The program `cafetiere` of the wheel: the command line of the native library.

It lies beside the package, not in it: the engine takes SIGINT and SIGHUP in a thread of its own,
which works only if all threads were started after it; importing the package starts numpy's. Tables
in Parquet, which the library does not read, go to the package's own command line.
"""

import ctypes
import importlib.util
import os
import pathlib
import signal
import sys

_OF_TABLES = ("fit", "predict")


def _library():
    """The native library, found as the package finds it."""
    path = pathlib.Path(__file__).parent / "cafetiere" / "_library.py"
    spec = importlib.util.spec_from_file_location("cafetiere_library", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.library()


def _is_parquet(path):
    """Whether a table is a Parquet file, or a folder of such, as Spark writes it."""
    if path.endswith(".parquet"):
        return True
    try:
        return any(entry.endswith(".parquet") or "=" in entry for entry in os.listdir(path))
    except OSError:
        return False


def _parquet_of(arguments):
    """The first argument that names a table in Parquet, or None."""
    if not arguments or arguments[0] not in _OF_TABLES:
        return None
    for before, argument in zip(arguments, arguments[1:]):
        name, equals, value = argument.partition("=")
        path = value if equals and name.startswith("-") else argument
        is_written = {before, name} & {"-out", "--out"}
        if not is_written and _is_parquet(path):
            return path
    return None


def _run_package():
    """Hands over to `python -m cafetiere`, whose flags have two dashes."""
    arguments = sys.argv[1:]
    for place, argument in enumerate(arguments):
        if argument[:1] == "-" and argument[1:2].isalpha() and len(argument) > 2:
            arguments[place] = "-" + argument
    sys.argv[:] = ["cafetiere", *arguments]
    from cafetiere.__main__ import main as run

    return run()


def main() -> int:
    """Runs the arguments of this process; returns the exit status."""
    table = _parquet_of(sys.argv[1:])
    if table is not None:
        if importlib.util.find_spec("pyarrow"):
            return _run_package()
        print(
            f"cafetiere: {table} is Parquet, which pyarrow reads, and that is not installed: "
            f"{sys.executable} -m pip install pyarrow",
            file=sys.stderr,
        )
        return 1
    try:
        library = _library()
    except ImportError as error:
        print(f"cafetiere: {error}", file=sys.stderr)
        return 1
    # As in a program that Python has not prepared; an ignored SIGINT stays ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    for changed in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(changed, signal.SIG_DFL)
    arguments = [b"cafetiere", *map(os.fsencode, sys.argv[1:])]
    argv = (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None)
    return library.cft_main(len(arguments), argv)
