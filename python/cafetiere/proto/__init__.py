# SPDX-License-Identifier: Apache-2.0
"""The messages of Caffe's files, for protobuf."""
