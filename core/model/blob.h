// SPDX-License-Identifier: Apache-2.0
// Conversion of BlobProto, a stored blob, to and from shapes and flat floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// The maximum number of blobs of a layer in a file.
inline constexpr int kMaxBlobs = 1024;

/// The maximum number of values of a blob, as in Caffe.
inline constexpr int64_t kMaxBlobCount = 2147483647;

/// Whether a blob may have this shape: no negative axis and at most kMaxBlobCount values, even if
/// the other axes are 0. The error contains only the shape.
Status check_blob_shape(const Shape& shape);

/// The shape of a stored blob: the four legacy fields if one is set, else `shape`. A negative axis
/// or more values than kMaxBlobCount is an error.
Result<Shape> blob_shape(const caffe::BlobProto& blob);

/// The number of values that a blob stores, whatever its shape.
size_t value_count(const caffe::BlobProto& blob);

/// Whether a stored blob matches `expected`. A legacy shape is right-aligned and padded with
/// leading ones: an old 1x1x1xN bias matches (N).
bool shape_equals(const caffe::BlobProto& blob, const Shape& expected);

/// An error with both shapes if a stored blob does not match `expected`.
Status check_shape(const caffe::BlobProto& blob, const Shape& expected);

/// Copies a blob's values, float or double, packed or not, to `out`. Its shape must match
/// `expected` and it must have that many values; the error contains both shapes.
Status blob_to_floats(const caffe::BlobProto& blob, const Shape& expected, std::span<float> out);

/// Replaces the values and the shape of `blob`.
void floats_to_blob(std::span<const float> values, const Shape& shape, caffe::BlobProto* blob);

}  // namespace cafetiere
