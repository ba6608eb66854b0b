# SPDX-License-Identifier: Apache-2.0
"""What the engine calls back: messages, Python layers and the hooks of solvers."""

import ctypes
import importlib
import os
import sys

from cafetiere import _settings
from cafetiere._guard import Guard
from cafetiere._library import Error, HostStruct
from cafetiere.blob import BlobVec, LayerBlob
from cafetiere.proto import caffe_pb2

_SETUP, _RESHAPE, _VALUES, _FORWARD, _BACKWARD = range(5)


class _Running:
    """A Python layer of a net, with the blobs that it is handed at every call."""

    def __init__(self, layer):
        self.layer = layer
        self.bottoms, self.tops = [], []
        self._of_net = ([], [], [])

    def belongs_to(self, bottoms, tops, params):
        """Tells which of the net's blobs the layer is handed, once there is a net."""
        self._of_net = bottoms, tops, params

    @staticmethod
    def _attach(blobs, structs, count, of_net):
        """Makes `blobs` look at `count` structs."""
        while len(blobs) < count:
            blobs.append(LayerBlob())
        for i, blob in enumerate(blobs):
            blob.attach(structs[i].contents, of_net[i] if of_net else None)

    def __call__(self, event):
        """Runs the method of an event and writes back what it decided."""
        layer, bottoms, tops = self.layer, self.bottoms, self.tops
        net_bottoms, net_tops, net_params = self._of_net
        if event.event == _VALUES:
            self._give_values(event)
            return
        self._attach(bottoms, event.bottoms, event.bottom_count, net_bottoms)
        if event.event in (_SETUP, _RESHAPE):
            self._settle_tops(event)
            (layer.setup if event.event == _SETUP else layer.reshape)(bottoms, tops)
            for i, top in enumerate(tops):
                event.tops[i].contents.shape = top.shape
            if event.event == _SETUP:
                event.param_count = len(layer.blobs)
                for i, blob in enumerate(layer.blobs):
                    event.params[i].contents.shape = blob.shape
            return
        self._attach(tops, event.tops, event.top_count, net_tops)
        self._attach(layer.blobs, event.params, event.param_count, net_params)
        if event.event == _FORWARD:
            layer.forward(bottoms, tops)
        else:
            down = [bool(event.propagate_down[i]) for i in range(event.bottom_count)]
            layer.backward(tops, down, bottoms)

    def _settle_tops(self, event):
        """The tops keep the shape that they had; the engine asks for it and does not tell it."""
        while len(self.tops) < event.top_count:
            self.tops.append(LayerBlob())

    def _give_values(self, event):
        first = [blob.data.copy() for blob in self.layer.blobs]
        self._attach(self.layer.blobs, event.params, event.param_count, self._of_net[2])
        for blob, values in zip(self.layer.blobs, first):
            blob.data[...] = values


def _find_class(param):
    """The class that a Python layer's python_param names."""
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())
    module = importlib.import_module(param.module)
    try:
        return getattr(module, param.layer)
    except AttributeError:
        raise Error(f"module '{param.module}' has no class '{param.layer}'") from None


def _make_layer(text):
    """An instance of the class that a LayerParameter in prototxt names."""
    from google.protobuf import text_format

    param = text_format.Parse(text, caffe_pb2.LayerParameter())
    kind = _find_class(param.python_param)
    layer = kind.__new__(kind)
    layer.blobs = BlobVec()
    layer.param_str, layer.phase, layer.name = (
        param.python_param.param_str,
        param.phase,
        param.name,
    )
    layer.param_str_ = (
        layer.param_str
    )  # the name before Caffe 1.0, as Faster R-CNN's layers read it
    layer.__init__(param)
    return layer


class Host:
    """The callbacks of one net or solver. Keep it as long as the engine's object lives."""

    def __init__(self, on_start=None, on_gradients_ready=None):
        self.layers = {}  # running Python layers by number
        self._text = b""
        self._guard = Guard()
        self.call = self._guard.call
        run = self._guard.run
        self.struct = HostStruct(
            None,
            HostStruct.LOG(lambda _, level, text: _settings.write(level, text.decode())),
            HostStruct.ERROR(lambda _: self._error()),
            HostStruct.LAYER_CREATE(lambda _, text, out: run(self._create, text, out)),
            HostStruct.LAYER_CALL(
                lambda _, number, event: run(self.layers[number], event.contents)
            ),
            HostStruct.LAYER_DESTROY(),  # layers go with the host
            HostStruct.HOOK(lambda _: run(on_start)),
            HostStruct.HOOK(lambda _: run(on_gradients_ready)),
        )

    def _error(self):
        failure = self._guard.failure
        self._text = f"{type(failure).__name__}: {failure}".encode()
        return ctypes.cast(ctypes.c_char_p(self._text), ctypes.c_void_p).value

    def _create(self, text, out):
        number = len(self.layers) + 1
        self.layers[number] = _Running(_make_layer(text.decode()))
        out[0] = number
