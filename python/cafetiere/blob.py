# SPDX-License-Identifier: Apache-2.0
"""Blob: an array of the engine and its gradient as numpy sees them, without copies."""

import ctypes
import numbers

import numpy as np

from cafetiere._library import BlobStruct, call, library


class _Memory:
    """Keeps a blob's memory valid as long as an array looks at it."""

    def __init__(self, handle):
        self._release = library().cft_memory_release
        self._handle = handle

    def __del__(self):
        self._release(self._handle)


def view(address, shape, owner):
    """A writable float32 array at an address; `owner` lives as long as the array does."""
    count = int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_float * count).from_address(address)
    memory.owner = owner
    if count == 0:
        return np.zeros(shape, np.float32)
    return np.frombuffer(memory, dtype=np.float32).reshape(shape)


def whole_sizes(dims):
    """Sizes as ints; raises TypeError for one that is no whole number."""
    for dim in dims:
        if not isinstance(dim, numbers.Real) or dim != int(dim):
            raise TypeError(f"a blob's sizes are whole numbers, and {dim!r} is none")
    return [int(dim) for dim in dims]


class Blob:
    """A blob of a net or a parameter: float32, row-major.

    `data` and `diff` are views: writing to them changes the net. They stay valid when the net is
    gone; after a blob has grown in a reshape they look at the old memory, so ask for them anew.
    """

    def __init__(self, net, number, function):
        # `net` is the Handle, so that it lives as long as the blob.
        self._net, self._number, self._function = net, number, function
        self._arrays = {}

    def _struct(self, memory=None):
        struct = BlobStruct()
        call(self._function, self._net, self._number, ctypes.byref(struct), memory)
        return struct

    def memory_at(self, part, address):
        """What keeps `data` or `diff` valid at an address; None if it lies elsewhere by now."""
        handle = ctypes.c_void_p()
        struct = self._struct(ctypes.byref(handle))
        memory = _Memory(handle)
        return memory if getattr(struct, part) == address else None

    def _array(self, part):
        struct = self._struct()
        key = (getattr(struct, part), struct.shape)
        cached = self._arrays.get(part)
        if cached is None or cached[0] != key:
            handle = ctypes.c_void_p()
            self._struct(ctypes.byref(handle))
            cached = (key, view(*key, _Memory(handle)))
            self._arrays[part] = cached
        return cached[1]

    def __repr__(self):
        """Its kind and shape."""
        return f"<{type(self).__name__} of shape {self.shape}>"

    @property
    def data(self):
        """The values."""
        return self._array("data")

    @property
    def was_seen(self):
        """Whether a program has asked for `data`, and may have written to it."""
        return "data" in self._arrays

    @property
    def diff(self):
        """The gradient."""
        return self._array("diff")

    @property
    def shape(self):
        """The sizes of the axes."""
        return self._struct().shape

    @property
    def count(self):
        """The number of values."""
        return int(np.prod(self.shape, dtype=np.int64))

    def reshape(self, *dims):
        """Gives the blob another shape; layers behind it follow when they run, or on Net.reshape().

        Memory only grows; where it does, the values are zero.
        """
        if self._function != "cft_net_blob":
            raise ValueError("a parameter cannot change its shape")
        sizes = (ctypes.c_int64 * len(dims))(*whole_sizes(dims))
        call("cft_net_reshape_blob", self._net, self._number, sizes, len(dims))

    def _legacy(self, axis):
        shape = self.shape
        if len(shape) > 4:
            raise ValueError(f"a blob of {len(shape)} axes has no num, channels, height and width")
        return shape[axis] if axis < len(shape) else 1

    @property
    def num(self):
        """The size of axis 0, or 1."""
        return self._legacy(0)

    @property
    def channels(self):
        """The size of axis 1, or 1."""
        return self._legacy(1)

    @property
    def height(self):
        """The size of axis 2, or 1."""
        return self._legacy(2)

    @property
    def width(self):
        """The size of axis 3, or 1."""
        return self._legacy(3)


class LayerBlob(Blob):
    """A blob as a Python layer sees it.

    Before the net has memory for it, in setup and reshape, `data` and `diff` are arrays of zeros;
    for a layer's own blobs they give the first values.
    """

    def __init__(self, shape=()):
        self._shape = tuple(shape)
        self._parts = {}
        self._at = {}

    def attach(self, struct, of_net):
        """Looks at the engine's memory from now on; None where there is none.

        `of_net` gives the net's own Blob of that memory, which its arrays keep alive; it is None
        before there is a net.
        """
        self._shape = struct.shape
        for part in ("data", "diff"):
            address = getattr(struct, part)
            key = (address, self._shape, of_net is not None)
            if address and self._at.get(part) != key:
                self._at[part] = key
                blob = of_net() if of_net else None
                owner = blob.memory_at(part, address) if blob else None
                self._parts[part] = view(address, self._shape, owner)

    def _struct(self, memory=None):
        struct = BlobStruct()
        struct.shape = self._shape
        return struct

    def _array(self, part):
        array = self._parts.get(part)
        if array is None or array.shape != self._shape:
            array = self._parts[part] = np.zeros(self._shape, np.float32)
        return array

    def reshape(self, *dims):
        """Sets the shape; a layer does so for its tops in setup or reshape."""
        self._shape = tuple(whole_sizes(dims))


class BlobVec(list):
    """Blobs in a row; a Python layer adds its parameters with add_blob()."""

    def add_blob(self, *dims):
        """Appends a parameter of that shape; for setup() of a Python layer."""
        self.append(LayerBlob(whole_sizes(dims)))
