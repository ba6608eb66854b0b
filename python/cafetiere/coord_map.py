# SPDX-License-Identifier: Apache-2.0
"""How the coordinates of one top of a NetSpec map to those of another, and crops that align them.

A map is (axis, a, b): from `axis` of an image on, x of the input goes to a * x + b of the output;
axis None stands for all.
"""

import numpy as np

from cafetiere.net_spec import layers as L

_ELEMENTWISE = """AbsVal BatchNorm Bias BN BNLL Clip Dropout Eltwise ELU Exp GELU HardSigmoid
HardSwish Log LRN Mish MVN Normalize Power PReLU ReLU ReLU6 Scale SeLu SeLuDropout ShuffleChannel
Sigmoid Split Swish TanH Threshold"""
PASS_THROUGH_LAYERS = frozenset(_ELEMENTWISE.split())
_IDENTITY = (None, 1, 0)


class UndefinedMapException(Exception):
    """A layer of this type has no map between the coordinates of its input and output."""


class AxisMismatchException(Exception):
    """Two maps begin at different axes."""


def _window(fn):
    """Axis, stride, extent of the kernel and padding of a convolution or pooling layer."""
    params = fn.params.get("convolution_param", fn.params)
    by_side = {f"{what}_{side}" for what in ("pad", "kernel", "stride") for side in "hw"}
    if by_side & set(params):
        raise ValueError("give kernel_size, stride and pad as lists instead of by _h and _w")

    def array(name, default=None):
        value = params[name] if default is None else params.get(name, default)
        return np.array(value, ndmin=1)

    extent = (array("kernel_size") - 1) * array("dilation", 1) + 1
    return params.get("axis", 1), array("stride", 1), extent, array("pad", 0)


def coord_map(fn):
    """The map of a layer's input to its output; UndefinedMapException where there is none."""
    if fn.type_name in ("Convolution", "Pooling", "Im2col"):
        axis, stride, extent, pad = _window(fn)
        return axis, 1 / stride, (pad - (extent - 1) / 2) / stride
    if fn.type_name == "Deconvolution":
        axis, stride, extent, pad = _window(fn)
        return axis, stride, (extent - 1) / 2 - pad
    if fn.type_name in PASS_THROUGH_LAYERS:
        return _IDENTITY
    if fn.type_name == "Crop":
        params = fn.params.get("crop_param", fn.params)
        return params.get("axis", 2) - 1, 1, -np.array(params.get("offset", 0), ndmin=1)
    raise UndefinedMapException(fn.type_name)


def compose(base_map, next_map):
    """The map that applies next_map, then base_map."""
    base_axis, base_a, base_b = base_map
    next_axis, next_a, next_b = next_map
    if base_axis is not None and next_axis is not None and base_axis != next_axis:
        raise AxisMismatchException(f"axis {base_axis} and axis {next_axis}")
    axis = next_axis if base_axis is None else base_axis
    return axis, base_a * next_a, base_a * next_b + base_b


def inverse(coord_map):
    """The map in the other direction."""
    axis, a, b = coord_map
    return axis, 1 / a, -b / a


def _ancestors(top):
    """Yields every top that `top` is made from, with the map from there to `top`, nearest first."""
    waiting, seen = [(top, _IDENTITY)], set()
    while waiting:
        here, to_top = waiting.pop(0)
        if here in seen:
            continue
        seen.add(here)
        yield here, to_top
        try:
            step = compose(to_top, coord_map(here.fn))
        except UndefinedMapException:
            continue
        # A crop's second input says only how large its output is.
        inputs = here.fn.inputs[:1] if here.fn.type_name == "Crop" else here.fn.inputs
        waiting.extend((bottom, step) for bottom in inputs)


def coord_map_from_to(top_from, top_to):
    """The map between two tops that come from a common one through spatial layers."""
    from_maps = dict(_ancestors(top_from))
    for top, to_map in _ancestors(top_to):
        if top in from_maps:
            return compose(to_map, inverse(from_maps[top]))
    raise RuntimeError("no spatial layers connect the two tops, so neither maps to the other")


def crop(top_from, top_to):
    """A Crop layer that brings top_from to the size and place of top_to.

    Raises AssertionError, as Caffe does, when they differ in scale or the offset is negative or not
    whole.
    """
    axis, a, b = coord_map_from_to(top_from, top_to)
    if not np.all(np.equal(a, 1)):
        raise AssertionError(f"the tops differ in scale by {a}, which a crop cannot change")
    if np.any(np.greater(b, 0)):
        begin = -np.asarray(b)
        raise AssertionError(f"the crop would begin at {begin}, outside of what is cropped")
    if np.any(np.round(b) != b):
        raise AssertionError(f"the crop would begin at {-np.asarray(b)}, between pixels")
    offset = [int(v) for v in -np.atleast_1d(np.round(b))]
    return L.Crop(top_from, top_to, crop_param={"axis": axis + 1, "offset": offset})
