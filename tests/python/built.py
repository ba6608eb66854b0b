# SPDX-License-Identifier: Apache-2.0
"""The package with its library. Tests that need the library are skipped where it is not built."""

import pytest

import cafetiere as caffe

try:
    caffe.layer_type_list()
except ImportError as missing:
    pytest.skip(str(missing), allow_module_level=True)

__all__ = ["aligned", "caffe"]


def aligned(*rows):
    """zip() of rows that must be of one length; its own strict= is not in Python 3.9."""
    rows = [list(row) for row in rows]
    assert len({len(row) for row in rows}) == 1
    return zip(*rows)
