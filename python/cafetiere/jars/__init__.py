# SPDX-License-Identifier: Apache-2.0
"""Holds cafetiere-spark.jar in an installed package; python/build_wheel puts it here."""
