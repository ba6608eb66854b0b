// SPDX-License-Identifier: Apache-2.0
// BlobProto, a stored blob, to and from shapes and flat floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// Blobs that a layer of a file may have.
inline constexpr int kMaxBlobs = 1024;

/// The most values a blob has, Caffe's limit.
inline constexpr int64_t kMaxBlobCount = 2147483647;

/// Whether a blob may have this shape: no negative size, and no more than kMaxBlobCount values, also
/// where a size of 0 leaves none of them. The error says the shape alone.
Status check_blob_shape(const Shape& shape);

/// The shape of a stored blob: the four legacy fields where one is set, else `shape`. A negative
/// size or more values than kMaxBlobCount is an error.
Result<Shape> blob_shape(const caffe::BlobProto& blob);

/// How many values a blob holds, whatever its shape says.
size_t value_count(const caffe::BlobProto& blob);

/// Whether a stored blob fits `expected`. A legacy shape fits right-aligned, with ones in front: an
/// old 1x1x1xN bias fits (N).
bool shape_equals(const caffe::BlobProto& blob, const Shape& expected);

/// An error that says both shapes where a stored blob does not fit `expected`.
Status check_shape(const caffe::BlobProto& blob, const Shape& expected);

/// Copies a blob's values, float or double, packed or not, to `out`. Its shape must fit `expected`
/// and it must hold as many values; the error says both shapes.
Status blob_to_floats(const caffe::BlobProto& blob, const Shape& expected, std::span<float> out);

/// Replaces the values and the shape of `blob`.
void floats_to_blob(std::span<const float> values, const Shape& shape, caffe::BlobProto* blob);

}  // namespace cafetiere
