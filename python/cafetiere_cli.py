# SPDX-License-Identifier: Apache-2.0
"""The program `cafetiere` of the wheel: the command line of the native library.

It lies beside the package, not in it: the engine takes SIGINT and SIGHUP in a thread of its own,
which works only if all threads were started after it; importing the package starts numpy's.
"""

import ctypes
import importlib.util
import os
import pathlib
import signal
import sys


def _library():
    """The native library, found as the package finds it."""
    path = pathlib.Path(__file__).parent / "cafetiere" / "_library.py"
    spec = importlib.util.spec_from_file_location("cafetiere_library", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.library()


def main() -> int:
    """Runs the arguments of this process; returns the exit status."""
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
