# SPDX-License-Identifier: Apache-2.0
"""Resizing arrays by interpolation."""

import numpy as np


def _bilinear_axis(array, axis, size):
    """Interpolates linearly along one axis; pixel centres keep their relative places."""
    old = array.shape[axis]
    at = np.clip((np.arange(size) + 0.5) * old / size - 0.5, 0, old - 1)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, old - 1)
    weight = (at - low).astype(np.float32)
    weight = weight.reshape([-1 if i == axis else 1 for i in range(array.ndim)])
    return array.take(low, axis) * (1 - weight) + array.take(high, axis) * weight


def _nearest_axis(array, axis, size):
    old = array.shape[axis]
    return array.take(np.minimum((np.arange(size) + 0.5) * old // size, old - 1).astype(int), axis)


def resize(image, size, order=1):
    """`image` (height, width, channels) at another `size` (height, width), as float32.

    order: 0 nearest, 1 bilinear, up to 5 by splines (needs scipy).
    """
    image = np.asarray(image, dtype=np.float32)
    if order <= 1:
        along = _bilinear_axis if order else _nearest_axis
        for axis in (0, 1):
            if image.shape[axis] != size[axis]:
                image = along(image, axis, int(size[axis]))
        return image.astype(np.float32)
    from scipy.ndimage import zoom

    factors = (size[0] / image.shape[0], size[1] / image.shape[1], 1)
    return zoom(image, factors[: image.ndim], order=order, mode="nearest", grid_mode=True).astype(
        np.float32
    )
