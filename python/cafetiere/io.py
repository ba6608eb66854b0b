# SPDX-License-Identifier: Apache-2.0
"""Images and arrays, to and from what nets and Caffe's files hold."""

import numpy as np

from cafetiere._image import resize
from cafetiere.proto import caffe_pb2


def blobproto_to_array(blob, return_diff=False):
    """The values of a BlobProto, or its gradient, as a float array of the blob's shape."""
    values = np.array(blob.diff if return_diff else blob.data, dtype=np.float64)
    if any(blob.HasField(name) for name in ("num", "channels", "height", "width")):
        return values.reshape(blob.num, blob.channels, blob.height, blob.width)
    return values.reshape(blob.shape.dim)


def array_to_blobproto(arr, diff=None):
    """A BlobProto of an array and, if given, of its gradient."""
    blob = caffe_pb2.BlobProto()
    blob.shape.dim.extend(arr.shape)
    blob.data.extend(np.asarray(arr, float).flat)
    if diff is not None:
        blob.diff.extend(np.asarray(diff, float).flat)
    return blob


def arraylist_to_blobprotovector_str(arraylist):
    """A serialised BlobProtoVector of several arrays."""
    vector = caffe_pb2.BlobProtoVector()
    vector.blobs.extend([array_to_blobproto(arr) for arr in arraylist])
    return vector.SerializeToString()


def blobprotovector_str_to_arraylist(text):
    """The arrays of a serialised BlobProtoVector."""
    return [blobproto_to_array(blob) for blob in caffe_pb2.BlobProtoVector.FromString(text).blobs]


def array_to_datum(arr, label=None):
    """A Datum of an array (channels, height, width): bytes of uint8, floats of any other type."""
    if arr.ndim != 3:
        raise ValueError(f"a Datum holds 3 axes, channels, height and width, not {arr.ndim}")
    datum = caffe_pb2.Datum()
    datum.channels, datum.height, datum.width = arr.shape
    if arr.dtype == np.uint8:
        datum.data = arr.tobytes()
    else:
        datum.float_data.extend(arr.astype(float).flat)
    if label is not None:
        datum.label = label
    return datum


def datum_to_array(datum):
    """The array (channels, height, width) that a Datum holds; its label is left out."""
    if len(datum.data):
        values = np.frombuffer(datum.data, dtype=np.uint8).copy()
    else:
        values = np.array(datum.float_data, dtype=np.float64)
    return values.reshape(datum.channels, datum.height, datum.width)


def load_image(filename, color=True):
    """An image file as float32 in [0, 1], (height, width, 3) in RGB order, or (height, width, 1).

    Transparency is dropped. Needs Pillow.
    """
    from PIL import Image

    with Image.open(filename) as image:
        is_deep = image.mode == "I" and image.format in ("PNG", "PPM")
        if is_deep or image.mode.startswith("I;16"):  # 16 bits of grey, which convert() would clip
            grey = np.asarray(image, dtype=np.float32)[:, :, np.newaxis] / 65535
            return np.repeat(grey, 3, axis=2) if color else grey
        pixels = np.asarray(image.convert("RGB" if color else "L"), dtype=np.float32) / 255
    return pixels if color else pixels[:, :, np.newaxis]


def resize_image(im, new_dims, interp_order=1):
    """An image (height, width, channels) resized to (height, width) `new_dims`, as float32.

    interp_order: 0 nearest, 1 bilinear; higher orders need scipy.
    """
    return resize(im, new_dims, interp_order)


def oversample(images, crop_dims):
    """Ten crops of each image: four corners and the centre, then the same mirrored.

    images: arrays (height, width, channels) of one shape; crop_dims: (height, width). Returns
    (10 * images, height, width, channels). Raises ValueError where the images are smaller.
    """
    shape = np.array(images[0].shape[:2])
    crop = np.array(crop_dims, int)
    last = shape - crop
    if (last < 0).any():
        raise ValueError(
            f"crops of {crop[0]} x {crop[1]} do not fit images of {shape[0]} x {shape[1]}"
        )
    centre = np.floor(shape / 2.0 - crop / 2.0).astype(int)
    corners = [(0, 0), (0, last[1]), (last[0], 0), (last[0], last[1]), tuple(centre)]
    crops = []
    for image in images:
        plain = [image[y : y + crop[0], x : x + crop[1]] for y, x in corners]
        crops += plain + [piece[:, ::-1] for piece in plain]
    return np.asarray(crops, dtype=np.float32)


class Transformer:
    """Brings images into the form that a net's inputs want, and back.

    inputs: the shapes of the input blobs by name. In this order preprocess() resizes to the input's
    height and width, transposes axes, swaps channels, multiplies by the raw scale, subtracts the
    mean and multiplies by the input scale; each step only where it was set.
    """

    def __init__(self, inputs):
        self.inputs = dict(inputs)
        self.transpose, self.channel_swap = {}, {}
        self.raw_scale, self.mean, self.input_scale = {}, {}, {}

    def _check(self, in_):
        if in_ not in self.inputs:
            raise ValueError(f"{in_} is not one of the net's inputs: {list(self.inputs)}")

    def preprocess(self, in_, data):
        """An image (height, width, channels) as the input `in_` wants it, a float32 array."""
        self._check(in_)
        out = np.asarray(data).astype(np.float32)
        size = tuple(self.inputs[in_][2:])
        if out.shape[:2] != size:
            out = resize_image(out, size)
        if in_ in self.transpose:
            out = out.transpose(self.transpose[in_])
        if in_ in self.channel_swap:
            out = out[self.channel_swap[in_], :, :]
        if in_ in self.raw_scale:
            out = out * self.raw_scale[in_]
        if in_ in self.mean:
            out = out - self.mean[in_]
        if in_ in self.input_scale:
            out = out * self.input_scale[in_]
        return np.asarray(out, np.float32)

    def deprocess(self, in_, data):
        """Undoes preprocess(), but for the resizing."""
        self._check(in_)
        out = np.asarray(data, dtype=np.float32).copy().squeeze()
        if in_ in self.input_scale:
            out = out / self.input_scale[in_]
        if in_ in self.mean:
            out = out + self.mean[in_]
        if in_ in self.raw_scale:
            out = out / self.raw_scale[in_]
        if in_ in self.channel_swap:
            out = out[np.argsort(self.channel_swap[in_]), :, :]
        if in_ in self.transpose:
            out = out.transpose(np.argsort(self.transpose[in_]))
        return out

    def set_transpose(self, in_, order):
        """The order of axes: (2, 0, 1) brings (height, width, channels) to Caffe's order."""
        self._check(in_)
        if len(order) != len(self.inputs[in_]) - 1:
            raise ValueError("give one axis of an image for each axis of the input but the batch")
        self.transpose[in_] = tuple(order)

    def set_channel_swap(self, in_, order):
        """The order of channels: (2, 1, 0) makes BGR of RGB."""
        self._check(in_)
        if len(order) != self.inputs[in_][1]:
            raise ValueError("give one channel for each channel of the input")
        self.channel_swap[in_] = list(order)

    def set_raw_scale(self, in_, scale):
        """What pixels are multiplied by before the mean: 255 for images in [0, 1]."""
        self._check(in_)
        self.raw_scale[in_] = scale

    def set_mean(self, in_, mean):
        """What is subtracted: one value a channel, or (channels, height, width).

        A mean of another height and width is resized to the input's.
        """
        self._check(in_)
        mean = np.asarray(mean, dtype=np.float32)
        channels, size = self.inputs[in_][1], tuple(self.inputs[in_][2:])
        if mean.ndim == 1:
            if mean.shape[0] != channels:
                raise ValueError(f"the mean has {mean.shape[0]} channels, the input {channels}")
            mean = mean[:, np.newaxis, np.newaxis]
        elif mean.ndim == 3 and mean.shape[0] == channels:
            if mean.shape[1:] != size:
                mean = resize_image(mean.transpose(1, 2, 0), size).transpose(2, 0, 1)
        else:
            raise ValueError(
                f"a mean of shape {mean.shape} does not fit an input of {channels} channels"
            )
        self.mean[in_] = mean

    def set_input_scale(self, in_, scale):
        """What the result is multiplied by, after the mean."""
        self._check(in_)
        self.input_scale[in_] = scale
