# SPDX-License-Identifier: Apache-2.0
"""Detector: classifies windows of images, as R-CNN does."""

import os

import numpy as np

from cafetiere import io
from cafetiere.classifier import image_transformer
from cafetiere.net import TEST, Net


class Detector(Net):
    """Scores windows of images.

    mean, input_scale, raw_scale, channel_swap: see io.Transformer; context_pad: pixels around a
    window, at the size of the net's input, that show its surroundings.
    """

    def __init__(
        self,
        model_file,
        pretrained_file,
        mean=None,
        input_scale=None,
        raw_scale=None,
        channel_swap=None,
        context_pad=None,
    ):
        super().__init__(model_file, TEST, weights=pretrained_file)
        self.transformer = image_transformer(self, mean, input_scale, raw_scale, channel_swap)
        self.configure_crop(context_pad)

    def detect_windows(self, images_windows):
        """Scores windows.

        images_windows: (image file, windows) pairs; a window is (ymin, xmin, ymax, xmax). Returns a
        list of {"window", "prediction", "filename"}, one for each window.
        """
        crops, found = [], []
        for filename, windows in images_windows:
            image = io.load_image(filename).astype(np.float32)
            for window in windows:
                crop = self.crop(image, np.asarray(window))
                if crop.size == 0 or self._is_empty(window):
                    raise ValueError(
                        f"{filename}: the window {tuple(map(float, window))} has no pixels of the"
                        f" image of {image.shape[0]} x {image.shape[1]}: windows are (ymin, xmin,"
                        " ymax, xmax)"
                    )
                crops.append(crop)
                found.append({"window": window, "filename": filename})
        if not crops:
            return []
        name = self.inputs[0]
        rows = np.stack([self.transformer.preprocess(name, crop) for crop in crops])
        scores = self.forward_all(**{name: rows})[self.outputs[0]].reshape(len(rows), -1)
        for detection, prediction in zip(found, scores):
            detection["prediction"] = prediction
        return found

    @staticmethod
    def _is_empty(window):
        top, left, bottom, right = (int(round(float(v))) for v in window)
        return bottom <= top or right <= left

    def detect_selective_search(self, image_fnames):
        """Scores the windows that selective search proposes.

        Needs the Python module selective_search_ijcv_with_python, which needs MATLAB.
        """
        import selective_search_ijcv_with_python as selective_search

        names = [os.path.abspath(name) for name in image_fnames]
        windows = selective_search.get_windows(names, cmd="selective_search_rcnn")
        return self.detect_windows(zip(names, windows))

    def crop(self, im, window):
        """The part of an image in a window, with the context that configure_crop() asked for.

        Where the context leaves the image it is filled with the mean.
        """
        top, left, bottom, right = (int(round(float(v))) for v in window)
        if not self.context_pad:
            return im[top:bottom, left:right]
        height, width = self.crop_mean.shape[:2]
        scale_y = height / (height - 2.0 * self.context_pad)
        scale_x = width / (width - 2.0 * self.context_pad)
        middle = np.array([(top + bottom) / 2.0, (left + right) / 2.0])
        half = np.array([(bottom - top) * scale_y, (right - left) * scale_x]) / 2.0
        box = np.round(np.concatenate([middle - half, middle + half])).astype(int)
        size = np.maximum(box[2:] - box[:2], 1)
        inside = np.clip(box, 0, [*im.shape[:2], *im.shape[:2]])
        # Where the visible part lies within the crop, at the crop's scale.
        ratio = np.array([height, width]) / size
        begin = np.round((inside[:2] - box[:2]) * ratio).astype(int)
        extent = np.round((inside[2:] - inside[:2]) * ratio).astype(int)
        extent = np.minimum(extent, np.array([height, width]) - begin)
        result = self.crop_mean.copy()
        if (extent > 0).all():
            seen = im[inside[0] : inside[2], inside[1] : inside[3]]
            rows = slice(begin[0], begin[0] + extent[0])
            result[rows, begin[1] : begin[1] + extent[1]] = io.resize_image(seen, extent)
        return result

    def configure_crop(self, context_pad):
        """Sets the context around windows and what fills it outside of an image: the mean."""
        name = self.inputs[0]
        self.context_pad = context_pad
        if not context_pad:
            return
        channels, height, width = self.blobs[name].shape[1:]
        mean = self.transformer.mean.get(name, np.zeros((channels, 1, 1), np.float32))
        full = np.broadcast_to(mean, (channels, height, width)).copy()
        # In the form that preprocess() makes a mean of again.
        plain = io.Transformer(self.transformer.inputs)
        plain.transpose = self.transformer.transpose
        plain.channel_swap = self.transformer.channel_swap
        plain.raw_scale = self.transformer.raw_scale
        self.crop_mean = plain.deprocess(name, full)
