# SPDX-License-Identifier: Apache-2.0
"""Net: a net of Caffe's files, run from Python layer by layer."""

import ctypes
import json
import os
import weakref
from collections import OrderedDict

import numpy as np

from cafetiere._host import Host
from cafetiere._library import Handle, call, call_for_json
from cafetiere._settings import next_seed, settings
from cafetiere.blob import Blob, BlobVec

TRAIN, TEST = 0, 1


def readable(path):
    """`path`; raises RuntimeError as Caffe does when it cannot be read."""
    if not os.access(path, os.R_OK):
        raise RuntimeError(f"Could not open file {path}")
    return os.fspath(path)


class NetLayer:
    """A layer of a net: its `name`, `type` and parameters `blobs`."""

    def __init__(self, name, kind, blobs):
        self.name, self.type, self.blobs = name, kind, blobs


class _Table(str):
    """Text of several lines, which a prompt or a notebook shows as lines."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


class Net:
    """A net read from a prototxt.

    Net(network_file, phase, level=0, stages=None, weights=None): `phase` is TRAIN or TEST;
    `weights` names a caffemodel or its HDF5 form. The older Net(network_file, weights, phase)
    works, too.

    Every blob can be read and written at any time through `blobs` and `params`, whose arrays are
    views.
    """

    def __init__(self, network_file, *args, **kwargs):
        if args and isinstance(args[0], (str, os.PathLike)):  # the older form
            args, kwargs["weights"] = args[1:], args[0]
        self._open(network_file, *args, **kwargs)

    def _open(self, network_file, phase, level=0, stages=None, weights=None):
        self._host = Host()
        options = {
            "path": readable(network_file),
            "phase": "TRAIN" if phase == TRAIN else "TEST",
            "level": level,
            "stages": list(stages or ()),
            "weights": readable(weights) if weights else "",
            "threads": settings.threads,
            "seed": next_seed(),
        }
        pointer = ctypes.c_void_p()
        self._host.call(
            "cft_net_create",
            json.dumps(options).encode(),
            ctypes.byref(self._host.struct),
            ctypes.byref(pointer),
        )
        self._describe(Handle(pointer, "cft_net_destroy", self._host))

    @classmethod
    def _of_solver(cls, handle, host):
        """A net that belongs to a solver."""
        net = cls.__new__(cls)
        net._host = host
        net._describe(handle)
        return net

    def _describe(self, handle):
        """Reads the net's structure, which never changes."""
        self._handle = handle
        described = call_for_json("cft_net_describe", handle)
        self.name = described["name"]
        self._blob_names = [blob["name"] for blob in described["blobs"]]
        self._blob_loss_weights = [blob["loss_weight"] for blob in described["blobs"]]
        self._blobs = [Blob(handle, i, "cft_net_blob") for i in range(len(self._blob_names))]
        self._inputs, self._outputs = described["inputs"], described["outputs"]
        self._layer_names = [layer["name"] for layer in described["layers"]]
        names = self._blob_names
        self.top_names, self.bottom_names = OrderedDict(), OrderedDict()
        self.layers, self.params = [], OrderedDict()
        params = {}
        for layer in described["layers"]:
            self.top_names[layer["name"]] = [names[i] for i in layer["tops"]]
            self.bottom_names[layer["name"]] = [names[i] for i in layer["bottoms"]]
            for i in layer["params"]:
                params.setdefault(i, Blob(handle, i, "cft_net_param"))
            blobs = BlobVec(params[i] for i in layer["params"])
            if blobs:
                self.params[layer["name"]] = blobs
            if layer["host_layer"]:
                running = self._host.layers[layer["host_layer"]]
                # Not the blobs themselves: they hold the net, which holds the layer.
                running.belongs_to(
                    [weakref.ref(self._blobs[i]) for i in layer["bottoms"]],
                    [weakref.ref(self._blobs[i]) for i in layer["tops"]],
                    [weakref.ref(params[i]) for i in layer["params"]],
                )
                self.layers.append(running.layer)
            else:
                self.layers.append(NetLayer(layer["name"], layer["type"], blobs))
        self.blobs = OrderedDict(zip(names, self._blobs))
        self.blob_loss_weights = OrderedDict(zip(names, self._blob_loss_weights))
        self.layer_dict = OrderedDict(zip(self._layer_names, self.layers))
        self.inputs = [names[i] for i in self._inputs]
        self.outputs = [names[i] for i in self._outputs]
        self._hooks = {"before_forward": [], "after_forward": []}
        self._hooks.update({"before_backward": [], "after_backward": []})

    def __repr__(self):
        """Its name and sizes."""
        # A parameter that layers share counts once.
        own = {id(blob): blob.count for blobs in self.params.values() for blob in blobs}
        return (
            f"<{type(self).__name__} '{self.name}': {len(self.layers)} layers, "
            f"{len(self.blobs)} blobs, {sum(own.values())} parameters>"
        )

    def summary(self):
        """The layers as a table: name, type, tops with their shapes, parameters; then their sums.

        A parameter that several layers share counts where it comes first; memory is that of blobs
        and parameters without their gradients, in float32.
        """
        rows, counted = [("layer", "type", "tops", "parameters")], set()
        for name, layer in zip(self._layer_names, self.layers):
            tops = [f"{top} {tuple(self.blobs[top].shape)}" for top in self.top_names[name]]
            own = [blob for blob in self.params.get(name, ()) if id(blob) not in counted]
            counted.update(id(blob) for blob in own)
            shapes = " ".join("x".join(map(str, blob.shape)) for blob in own)
            count = f"{sum(blob.count for blob in own):,} ({shapes})" if own else ""
            rows.append((name, layer.type, ", ".join(tops), count))
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        parameters = {id(blob): blob.count for blobs in self.params.values() for blob in blobs}
        weights = sum(parameters.values())
        floats = weights + sum(blob.count for blob in self._blobs)
        lines.append(f"{weights:,} parameters, {4 * floats / 2**20:,.1f} MiB with all blobs")
        return _Table("\n".join(lines))

    # ---- running

    def _layer_index(self, name):
        try:
            return self._layer_names.index(name)
        except ValueError:
            raise ValueError(f"the net has no layer '{name}'") from None

    def _fill(self, arrays, part, not_batch):
        """Copies arrays into the blobs of their names."""
        for name, array in arrays.items():
            target = getattr(self.blobs[name], part)
            if array.shape[:1] != target.shape[:1]:
                raise Exception(not_batch)
            target[...] = array

    def _run(self, function, step, first, last, on_layer):
        """Runs layers first..last, one by one when hooks are to be called in between."""
        before, after = self._hooks["before_" + on_layer], self._hooks["after_" + on_layer]
        if not before and not after:
            return function(first, last)
        total = 0.0
        for i in range(first, last + step, step):
            for hook in before:
                hook(i)
            total += function(i, i) or 0.0
            for hook in after:
                hook(i)
        return total

    def _forward(self, first, last):
        """Runs layers first..last by index; returns their loss."""
        self._require_data(first, last)
        return self._run(self._forward_range, 1, first, last, "forward")

    def _require_data(self, first, last):
        """Raises RuntimeError, as Caffe does, for a MemoryData layer that nobody can have fed."""
        for i in range(first, last + 1):
            name = self._layer_names[i]
            if getattr(self.layers[i], "type", "") != "MemoryData":
                continue
            is_fed = i == 0 and getattr(self._handle, "inputs", None) is not None
            if not is_fed and not any(self.blobs[top].was_seen for top in self.top_names[name]):
                raise RuntimeError(
                    f"layer '{name}' of type MemoryData has no data: call set_input_arrays(data,"
                    " labels), or write to the data of its blobs"
                )

    def _forward_range(self, first, last):
        loss = ctypes.c_float()
        self._host.call("cft_net_forward", self._handle, first, last, ctypes.byref(loss))
        return loss.value

    def _backward(self, first, last):
        """Runs layers first down to last by index."""
        self._run(self._backward_range, -1, first, last, "backward")

    def _backward_range(self, first, last):
        self._host.call("cft_net_backward", self._handle, first, last)

    def forward(self, blobs=None, start=None, end=None, **kwargs):
        """Runs the net from layer `start` through layer `end`, by name.

        Keyword arguments fill the input blobs, all of them, a batch each. Returns views of the
        outputs (or of the tops of `end`) and of the `blobs` asked for, by name.
        """
        first = self._layer_index(start) if start is not None else 0
        last = self._layer_index(end) if end is not None else len(self.layers) - 1
        wanted = self.top_names[end] if end is not None else self.outputs
        if kwargs:
            if set(kwargs) != set(self.inputs):
                raise Exception("Input blob arguments do not match net inputs.")
            self._fill(kwargs, "data", "Input is not batch sized")
        self._forward(first, last)
        return {name: self.blobs[name].data for name in [*wanted, *(blobs or ())]}

    def backward(self, diffs=None, start=None, end=None, **kwargs):
        """Runs backward from layer `start` through layer `end`, by name.

        Keyword arguments fill the diffs of the outputs, or of the tops of `start`. Returns views of
        the input blobs' diffs (or of the bottoms' of `end`) and of the `diffs` asked for, by name.
        """
        first = self._layer_index(start) if start is not None else len(self.layers) - 1
        last = self._layer_index(end) if end is not None else 0
        wanted = self.bottom_names[end] if end is not None else self.inputs
        if kwargs:
            tops = self.top_names[start] if start is not None else self.outputs
            if set(kwargs) != set(tops):
                raise Exception("Top diff arguments do not match net outputs.")
            self._fill(kwargs, "diff", "Diff is not batch sized")
        self._backward(first, last)
        return {name: self.blobs[name].diff for name in [*wanted, *(diffs or ())]}

    @property
    def _batch_size(self):
        return self._blobs[self._inputs[0]].shape[0] if self._inputs else self._blobs[0].shape[0]

    def _batch(self, blobs):
        """Batches of the arrays in `blobs`, the last one filled up with zeros."""
        count = len(next(iter(blobs.values())))
        size = self._batch_size
        for first in range(0, count, size):
            batch = {name: np.asarray(array[first : first + size]) for name, array in blobs.items()}
            missing = size - len(next(iter(batch.values())))
            if missing:
                batch = {
                    name: np.concatenate(
                        [array, np.zeros((missing, *array.shape[1:]), array.dtype)]
                    )
                    for name, array in batch.items()
                }
            yield batch

    @staticmethod
    def _count(arrays):
        """The number of rows of the first array; at least one."""
        if not arrays:
            raise ValueError("there are no arrays: name each input, such as data=images")
        name, array = next(iter(arrays.items()))
        if len(array) == 0:
            raise ValueError(f"{name} has no rows: at least one is needed")
        return len(array)

    def forward_all(self, blobs=None, **kwargs):
        """Runs any number of rows through the net in batches; returns copies, by name."""
        count = self._count(kwargs)
        gathered = {}
        for batch in self._batch(kwargs):
            for name, array in self.forward(blobs=blobs, **batch).items():
                gathered.setdefault(name, []).extend(array.copy())
        return {name: np.asarray(rows[:count]) for name, rows in gathered.items()}

    def forward_backward_all(self, blobs=None, diffs=None, **kwargs):
        """As forward_all, and backward after each batch; keywords name inputs and outputs' diffs.

        Returns copies of blobs and of diffs, by name.
        """
        count = self._count(kwargs)
        inputs = {name: rows for name, rows in kwargs.items() if name in self.inputs}
        tops = {name: rows for name, rows in kwargs.items() if name in self.outputs}
        all_blobs, all_diffs = {}, {}
        batches = self._batch(tops) if tops else iter(dict, None)
        for batch, top_diffs in zip(self._batch(inputs), batches):
            for name, array in self.forward(blobs=blobs, **batch).items():
                all_blobs.setdefault(name, []).extend(array.copy())
            for name, array in self.backward(diffs=diffs, **top_diffs).items():
                all_diffs.setdefault(name, []).extend(array.copy())
        return tuple(
            {name: np.asarray(rows[:count]) for name, rows in gathered.items()}
            for gathered in (all_blobs, all_diffs)
        )

    def before_forward(self, hook):
        """Calls hook(layer_index) before each layer that forward() runs; not in a solver's step."""
        self._hooks["before_forward"].append(hook)

    def after_forward(self, hook):
        """Calls hook(layer_index) after each layer that forward() runs."""
        self._hooks["after_forward"].append(hook)

    def before_backward(self, hook):
        """Calls hook(layer_index) before each layer that backward() runs."""
        self._hooks["before_backward"].append(hook)

    def after_backward(self, hook):
        """Calls hook(layer_index) after each layer that backward() runs."""
        self._hooks["after_backward"].append(hook)

    # ---- shapes, inputs and weights

    def reshape(self):
        """Works out all shapes again from those of the inputs."""
        self._host.call("cft_net_reshape", self._handle)

    def set_input_arrays(self, data, labels):
        """Feeds the MemoryData layer that the net begins with; the arrays are used, not copied.

        data: float32, C-contiguous, (rows, channels, height, width); labels: float32, one a row;
        rows is a multiple of the layer's batch_size.
        """
        for array, what in ((data, "data"), (labels, "labels")):
            if array.dtype != np.float32 or not array.flags.c_contiguous:
                raise ValueError(f"{what} must be a C-contiguous array of float32")
        if data.ndim != 4 or data.shape[1:] != self._blobs[0].shape[1:]:
            raise ValueError(f"data has shape {data.shape}, the layer wants {self._blobs[0].shape}")
        if labels.size != len(data):
            raise ValueError(f"there are {labels.size} labels for {len(data)} rows")
        pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (data, labels))
        call("cft_net_set_input", self._handle, self._layer_names[0].encode(), *pointers, len(data))
        self._handle.inputs = (data, labels)  # as long as the engine may read them

    def clear_param_diffs(self):
        """Sets the gradients of all parameters to zero; backward() adds to them."""
        call("cft_net_clear_param_diffs", self._handle)

    def copy_from(self, path):
        """Copies weights by layer name from a caffemodel or its HDF5 form."""
        call("cft_net_copy_from", self._handle, readable(path).encode())

    load_hdf5 = copy_from

    def share_with(self, other):
        """Uses the weights of `other` from now on, by layer name."""
        call("cft_net_share_with", self._handle, other._handle)

    def save(self, path):
        """Writes the weights as a caffemodel."""
        call("cft_net_save", self._handle, os.fspath(path).encode(), 0)

    def save_hdf5(self, path):
        """Writes the weights in HDF5 form."""
        call("cft_net_save", self._handle, os.fspath(path).encode(), 1)
