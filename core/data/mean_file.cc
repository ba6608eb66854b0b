// SPDX-License-Identifier: Apache-2.0
#include "core/data/mean_file.h"

#include <fmt/format.h>

#include "core/model/file.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {
namespace {

std::vector<int64_t> dims_of(const caffe::BlobProto& blob) {
  if (blob.has_shape()) return {blob.shape().dim().begin(), blob.shape().dim().end()};
  return {blob.num(), blob.channels(), blob.height(), blob.width()};
}

/// Whether dimensions hold `values` values; avoids an overflow of the product.
bool fills(const std::vector<int64_t>& dims, int64_t values) {
  for (const int64_t d : dims) {
    if (d < 1 || values % d != 0) return false;
    values /= d;
  }
  return values == 1;
}

}  // namespace

Result<MeanImage> read_mean_image(const std::string& path) {
  CFT_ASSIGN(const std::string bytes, read_file(path));
  return parse_mean_image(bytes, path);
}

Result<MeanImage> parse_mean_image(const std::string& bytes, const std::string& name) {
  caffe::BlobProto blob;
  if (!blob.ParseFromString(bytes)) {
    return invalid_argument(name + " is not a binary BlobProto; make it with compute_image_mean");
  }
  std::vector<int64_t> dims = dims_of(blob);
  const bool filled = fills(dims, blob.data_size());
  if (dims.size() == 4 && dims[0] == 1) dims.erase(dims.begin());
  if (!filled || dims.size() != 3) {
    return invalid_argument(
        fmt::format("{} holds {} values, which are not one image; make it with compute_image_mean",
                    name, blob.data_size()));
  }
  return MeanImage{Shape(std::move(dims)), {blob.data().begin(), blob.data().end()}};
}

Status write_mean_image(const std::string& path, const MeanImage& image) {
  caffe::BlobProto blob;
  blob.set_num(1);
  blob.set_channels(static_cast<int32_t>(image.shape[0]));
  blob.set_height(static_cast<int32_t>(image.shape[1]));
  blob.set_width(static_cast<int32_t>(image.shape[2]));
  blob.mutable_data()->Add(image.values.begin(), image.values.end());
  return write_file(path, blob.SerializeAsString());
}

}  // namespace cafetiere
