# SPDX-License-Identifier: Apache-2.0
"""The package with its library. Tests that need the library are skipped where it is not built."""

import pytest

import cafetiere as caffe

try:
    caffe.layer_type_list()
except ImportError as missing:
    pytest.skip(str(missing), allow_module_level=True)

__all__ = ["caffe"]
