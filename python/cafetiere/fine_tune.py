# SPDX-License-Identifier: Apache-2.0
"""Deploy nets, such as import_onnx gives, made into nets to train."""

from google.protobuf import text_format

from cafetiere.proto import caffe_pb2

_FILLERS = {"Convolution": "msra", "Deconvolution": "msra", "InnerProduct": "xavier"}


def trainable(net, weights, classes, *, batch=32, frozen=(), scale=1.0, images=True):
    """The prototxt of a net that trains a deploy net to tell other classes apart.

    `net` and `weights`: the deploy net's prototxt and caffemodel, as import_onnx returns them.
    Rows of a table take the place of its Input layer, `batch` of them on each shard: encoded images
    or, without `images`, numbers, multiplied by `scale`. The last layer gets a new name and
    `classes` outputs, so that it starts from random weights, and a SoftmaxWithLoss follows it.
    `frozen`: names or types of layers whose weights stay as they are, such as "conv1" or
    "Convolution". Raises ValueError if the net has several inputs or does not end in an
    InnerProduct layer, or a Softmax after one.
    """
    spec = text_format.Parse(net, caffe_pb2.NetParameter())
    inputs = [layer for layer in spec.layer if layer.type == "Input"]
    layers = [layer for layer in spec.layer if layer.type != "Input"]
    if layers and layers[-1].type == "Softmax":
        layers.pop()
    if len(inputs) != 1 or not layers or layers[-1].type != "InnerProduct":
        raise ValueError(
            "a net to fine-tune has one Input layer and ends in an InnerProduct layer, or in a "
            f"Softmax after one; this one has {len(inputs)} of the first and ends in "
            f"{layers[-1].type if layers else 'nothing'}"
        )
    _freeze(layers[:-1], frozen, caffe_pb2.NetParameter.FromString(weights))
    for layer in layers:
        if layer.type in _FILLERS:
            _own_param(layer).weight_filler.type = _FILLERS[layer.type]
    scores = layers[-1]
    scores.name += "/new"
    scores.inner_product_param.num_output = classes
    made = caffe_pb2.NetParameter(name=spec.name)
    made.layer.append(_rows(inputs[0], batch, scale, images))
    made.layer.extend(layers)
    loss = made.layer.add(name="loss", type="SoftmaxWithLoss", top=["loss"])
    loss.bottom.extend([scores.top[0], "label"])
    loss.include.add(phase=caffe_pb2.TRAIN)
    return text_format.MessageToString(made)


def _own_param(layer):
    if layer.type == "InnerProduct":
        return layer.inner_product_param
    return layer.convolution_param


def _freeze(layers, frozen, weights):
    blobs = {layer.name: len(layer.blobs) for layer in weights.layer}
    for name in frozen:
        named = [layer for layer in layers if name in (layer.name, layer.type)]
        if not named:
            there = ", ".join(layer.name for layer in layers)
            raise ValueError(f"no layer has the name or type {name!r}; there are {there}")
        for layer in named:
            del layer.param[:]
            layer.param.extend([caffe_pb2.ParamSpec(lr_mult=0)] * blobs.get(layer.name, 0))


def _rows(source, batch, scale, images):
    """The layer whose rows of a table take the place of the layer `source`."""
    _, channels, height, width = [*source.input_param.shape[0].dim, 1, 1][:4]
    rows = caffe_pb2.LayerParameter(name="rows", type="MemoryData", top=[source.top[0], "label"])
    data = rows.memory_data_param
    data.batch_size, data.channels, data.height, data.width = batch, channels, height, width
    data.image_encoded = images
    rows.transform_param.scale = scale
    return rows
