# SPDX-License-Identifier: Apache-2.0
"""Classifier: a net with the preparation of its images."""

import numpy as np

from cafetiere import io
from cafetiere.net import TEST, Net


def image_transformer(net, mean, input_scale, raw_scale, channel_swap):
    """A Transformer for the net's first input; images come as (height, width, channels)."""
    name = net.inputs[0]
    transformer = io.Transformer({name: net.blobs[name].shape})
    transformer.set_transpose(name, (2, 0, 1))
    if mean is not None:
        transformer.set_mean(name, mean)
    if input_scale is not None:
        transformer.set_input_scale(name, input_scale)
    if raw_scale is not None:
        transformer.set_raw_scale(name, raw_scale)
    if channel_swap is not None:
        transformer.set_channel_swap(name, channel_swap)
    return transformer


class Classifier(Net):
    """Classifies images.

    image_dims: (height, width) that images are resized to before cropping, by default the input's
    own; mean, input_scale, raw_scale, channel_swap: see io.Transformer.
    """

    def __init__(
        self,
        model_file,
        pretrained_file,
        image_dims=None,
        mean=None,
        input_scale=None,
        raw_scale=None,
        channel_swap=None,
    ):
        super().__init__(model_file, TEST, weights=pretrained_file)
        self.transformer = image_transformer(self, mean, input_scale, raw_scale, channel_swap)
        self.crop_dims = np.array(self.blobs[self.inputs[0]].shape[2:])
        self.image_dims = self.crop_dims if image_dims is None else np.array(image_dims)
        if (self.image_dims < self.crop_dims).any():
            raise ValueError(
                "image_dims are {} x {}, and the net's input is {} x {}, which is cropped from"
                " images of that size: make them at least as large".format(
                    *self.image_dims, *self.crop_dims
                )
            )

    def predict(self, inputs, oversample=True):
        """The class scores of images, (images, classes).

        inputs: images (height, width, channels). With `oversample` the scores are the mean over ten
        crops: corners, centre and their mirror images; else they are those of the centre.
        """
        images = np.stack([io.resize_image(image, self.image_dims) for image in inputs])
        if oversample:
            crops = io.oversample(images, self.crop_dims)
        else:
            top, left = (self.image_dims - self.crop_dims) // 2
            height, width = self.crop_dims
            crops = images[:, top : top + height, left : left + width, :]
        name = self.inputs[0]
        rows = np.stack([self.transformer.preprocess(name, crop) for crop in crops])
        scores = self.forward_all(**{name: rows})[self.outputs[0]]
        if oversample:
            scores = scores.reshape(len(scores) // 10, 10, -1).mean(1)
        return scores
