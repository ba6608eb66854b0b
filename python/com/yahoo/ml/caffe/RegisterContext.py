# SPDX-License-Identifier: Apache-2.0
"""Calls that CaffeOnSpark's scripts begin with; nothing is left to do in them."""


def registerContext(sc):
    """Does nothing: each class is given its SparkContext."""


def registerSQLContext(sqlContext):
    """Does nothing."""
