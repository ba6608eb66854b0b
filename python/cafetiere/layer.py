# SPDX-License-Identifier: Apache-2.0
"""Layer: the base of layers written in Python."""

from cafetiere.blob import BlobVec


class Layer:
    """A layer that a net names with type "Python".

    A subclass has setup(bottom, top), reshape(bottom, top), forward(bottom, top) and
    backward(top, propagate_down, bottom); bottoms and tops are lists of Blob. It finds

    * `param_str`: the text of python_param { param_str }, also as `param_str_`, its older name,
    * `phase`: TRAIN or TEST,
    * `blobs`: its parameters; setup() adds them with blobs.add_blob(*shape) and may write their
      first values to `blobs[i].data`. backward() adds to `blobs[i].diff`,
    * `name` and `type` of the layer.

    An exception in any of them ends the run of the net as an Error whose cause it is.
    """

    type = "Python"

    def __init__(self, layer_param=None):
        self.layer_param = layer_param
        if not hasattr(self, "blobs"):
            self.blobs = BlobVec()

    def setup(self, bottom, top):
        """Is called once, before the first reshape."""

    def reshape(self, bottom, top):
        """Sets the shapes of the tops; is called before every forward."""

    def forward(self, bottom, top):
        """Writes the tops' data."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def backward(self, top, propagate_down, bottom):
        """Writes the diff of the bottoms that propagate_down marks."""
        raise NotImplementedError(f"{type(self).__name__} has no backward")
