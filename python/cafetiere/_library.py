# SPDX-License-Identifier: Apache-2.0
"""The native library: finding it, loading it at first use, its structs and its errors."""

import ctypes
import functools
import json
import os
import pathlib

MAX_AXES = 32


class Error(RuntimeError):
    """What the engine refused or could not do; the text says where and what to change.

    `code` is the number of the C interface's cft_error.
    """

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


class _Sized(ctypes.Structure):
    """A struct whose first field says how large it is."""

    _fields_ = [("struct_size", ctypes.c_uint64)]

    def __init__(self, *fields):
        super().__init__(ctypes.sizeof(self), *fields)


class BlobStruct(_Sized):
    """cft_blob: where a blob's data and diff are, and its shape."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("diff", ctypes.c_void_p),
        ("axes", ctypes.c_int32),
        ("dims", ctypes.c_int64 * MAX_AXES),
    ]

    @property
    def shape(self):
        """The sizes of the axes."""
        return tuple(self.dims[: self.axes])

    @shape.setter
    def shape(self, dims):
        if len(dims) > MAX_AXES:
            raise ValueError(f"a blob has at most {MAX_AXES} axes, not {len(dims)}")
        self.axes = len(dims)
        for i, dim in enumerate(dims):
            self.dims[i] = int(dim)


class LayerCall(_Sized):
    """cft_layer_call: an event of a Python layer and the blobs it is about."""

    _fields_ = [
        ("event", ctypes.c_int32),
        ("bottom_count", ctypes.c_int32),
        ("top_count", ctypes.c_int32),
        ("param_count", ctypes.c_int32),
        ("bottoms", ctypes.POINTER(ctypes.POINTER(BlobStruct))),
        ("tops", ctypes.POINTER(ctypes.POINTER(BlobStruct))),
        ("params", ctypes.POINTER(ctypes.POINTER(BlobStruct))),
        ("propagate_down", ctypes.POINTER(ctypes.c_uint8)),
    ]


class HostStruct(_Sized):
    """cft_host: the functions that the engine calls back."""

    LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
    ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    LAYER_CREATE = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64)
    )
    LAYER_CALL = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(LayerCall)
    )
    LAYER_DESTROY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    HOOK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

    _fields_ = [
        ("context", ctypes.c_void_p),
        ("log", LOG),
        ("error", ERROR),
        ("layer_create", LAYER_CREATE),
        ("layer_call", LAYER_CALL),
        ("layer_destroy", LAYER_DESTROY),
        ("on_start", HOOK),
        ("on_gradients_ready", HOOK),
    ]


class CallbacksStruct(_Sized):
    """cft_callbacks: whom a trainer tells its events, each as JSON."""

    EVENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)

    _fields_ = [("context", ctypes.c_void_p), ("event", EVENT), ("checkpoint", ctypes.c_void_p)]


def _candidates():
    """Where the library may be: as told, within the package, in a build of the source tree."""
    told = os.environ.get("CAFETIERE_LIBRARY")
    if told:
        return [pathlib.Path(told)]
    package = pathlib.Path(__file__).parent
    bundled = package / "lib" / "libcafetiere.so"
    builds = package.parents[1].glob("build/*/lib/libcafetiere.so")
    builds = [path for path in builds if path.parts[-3] != "arm64"]  # that one is cross-built
    return [bundled, *sorted(builds, key=lambda path: path.stat().st_mtime, reverse=True)]


@functools.cache
def library():
    """The loaded library."""
    tried = _candidates()
    for path in tried:
        if path.exists():
            return _declare(ctypes.CDLL(str(path)))
    raise ImportError(
        "libcafetiere.so was not found; install the wheel, run tools/build in the source tree, or "
        "set CAFETIERE_LIBRARY to its path. Looked at: " + ", ".join(map(str, tried))
    )


def _declare(lib):
    """Tells ctypes the types of what the package calls; it would cut sizes to an int."""
    handle, text, i32, i64 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int64
    out, blob, host = (
        ctypes.POINTER(handle),
        ctypes.POINTER(BlobStruct),
        ctypes.POINTER(HostStruct),
    )
    floats, none = ctypes.c_void_p, None
    u64, size = ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)
    signatures = {
        "cft_free": (none, [handle]),
        "cft_net_create": (i32, [text, host, out]),
        "cft_net_describe": (i32, [handle, out]),
        "cft_net_blob": (i32, [handle, i32, blob, out]),
        "cft_net_param": (i32, [handle, i32, blob, out]),
        "cft_memory_release": (none, [handle]),
        "cft_net_reshape_blob": (i32, [handle, i32, ctypes.POINTER(i64), i32]),
        "cft_net_reshape": (i32, [handle]),
        "cft_net_forward": (i32, [handle, i32, i32, ctypes.POINTER(ctypes.c_float)]),
        "cft_net_backward": (i32, [handle, i32, i32]),
        "cft_net_clear_param_diffs": (i32, [handle]),
        "cft_net_set_input": (i32, [handle, text, floats, floats, i64]),
        "cft_net_copy_from": (i32, [handle, text]),
        "cft_net_share_with": (i32, [handle, handle]),
        "cft_net_save": (i32, [handle, text, i32]),
        "cft_net_destroy": (none, [handle]),
        "cft_solver_create": (i32, [text, host, out]),
        "cft_solver_describe": (i32, [handle, out]),
        "cft_solver_net": (i32, [handle, i32, out]),
        "cft_solver_step": (i32, [handle, i32]),
        "cft_solver_solve": (i32, [handle]),
        "cft_solver_apply_update": (i32, [handle]),
        "cft_solver_set_base_lr": (i32, [handle, ctypes.c_float]),
        "cft_solver_snapshot": (i32, [handle]),
        "cft_solver_restore": (i32, [handle, text]),
        "cft_solver_destroy": (none, [handle]),
        "cft_predictor_create": (i32, [text, handle, u64, out]),
        "cft_predictor_describe": (i32, [handle, out]),
        "cft_predictor_floats": (i32, [handle, i64, *[handle] * 2, i32, *[handle] * 2, i32]),
        "cft_predictor_reset": (i32, [handle]),
        "cft_predictor_run": (i32, [handle, i64, text, u64, out]),
        "cft_predictor_destroy": (none, [handle]),
        "cft_describe": (i32, [text, out]),
        "cft_rows_create": (i32, [text, out]),
        "cft_rows_append": (i32, [handle, i64, text, u64]),
        "cft_rows_destroy": (none, [handle]),
        "cft_table_create": (i32, [text, out]),
        "cft_table_add": (i32, [handle, i64, text, u64]),
        "cft_table_net": (i32, [handle, text, out]),
        "cft_table_destroy": (none, [handle]),
        "cft_trainer_create": (i32, [text, handle, out]),
        "cft_trainer_restore": (i32, [handle, handle, u64, handle, u64]),
        "cft_trainer_validation": (i32, [handle, handle]),
        "cft_trainer_run": (i32, [handle] * 3),
        "cft_trainer_result": (i32, [handle, out]),
        "cft_trainer_model": (i32, [handle, out, size]),
        "cft_trainer_destroy": (none, [handle]),
        "cft_schema": (i32, [out, size]),
        "cft_layer_types": (i32, [out]),
        "cft_onnx_export": (i32, [text, handle, u64, out, size]),
        "cft_onnx_import": (i32, [handle, u64, i64, out, out, size]),
        "cft_report": (i32, [text, text, out]),
        "cft_last_error": (text, []),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


class Handle:
    """An object of the library, destroyed with this one; passed to call() as it is."""

    def __init__(self, pointer, destroy=None, owner=None):
        self._as_parameter_ = pointer
        self._destroy = getattr(library(), destroy) if destroy else None
        self._owner = owner  # what must outlive it

    def close(self):
        """Destroys the object now."""
        destroy, self._destroy = self._destroy, None
        if destroy:
            destroy(self._as_parameter_)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()  # Python drops what is raised here, Ctrl-C too: before long work use `with`


def call(name, *arguments):
    """Calls a function of the library; raises Error with the engine's text when it fails."""
    lib = library()
    code = getattr(lib, name)(*arguments)
    if code:
        raise Error(lib.cft_last_error().decode(errors="replace"), code)


def call_for_text(name, *arguments):
    """Calls a function whose last argument receives text."""
    out = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(out))
    try:
        return ctypes.string_at(out).decode()
    finally:
        library().cft_free(out)


def call_for_json(name, *arguments):
    """Calls a function whose last argument receives JSON."""
    return json.loads(call_for_text(name, *arguments))


def call_for_bytes(name, *arguments):
    """Calls a function whose last arguments receive bytes and their number."""
    out, size = ctypes.c_void_p(), ctypes.c_uint64()
    call(name, *arguments, ctypes.byref(out), ctypes.byref(size))
    try:
        return ctypes.string_at(out, size.value)
    finally:
        library().cft_free(out)
