# SPDX-License-Identifier: Apache-2.0
"""CaffeOnSpark's Python names, over the classes of the jar cafetiere-compat.

Each module has the class of its own name, as in CaffeOnSpark:
``from com.yahoo.ml.caffe.CaffeOnSpark import CaffeOnSpark``.
"""
