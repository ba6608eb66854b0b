# SPDX-License-Identifier: Apache-2.0
"""Pages of the site that are made from sources, and what looks whether its links lead somewhere."""
