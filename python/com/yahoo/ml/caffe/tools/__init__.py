# SPDX-License-Identifier: Apache-2.0
"""CaffeOnSpark's Python names for captions of images, over the classes of cafetiere-compat."""
