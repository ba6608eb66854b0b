// SPDX-License-Identifier: Apache-2.0
#include "core/data/mean_file.h"

#include <fmt/format.h>

#include "core/model/blob.h"
#include "core/model/file.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

Result<MeanImage> read_mean_image(const std::string& path) {
  CFT_ASSIGN(const std::string bytes, read_file(path));
  return parse_mean_image(bytes, path);
}

Result<MeanImage> parse_mean_image(const std::string& bytes, const std::string& name) {
  caffe::BlobProto blob;
  if (!blob.ParseFromString(bytes)) {
    return invalid_argument(name + " is not a binary BlobProto; make it with compute_image_mean");
  }
  const Result<Shape> stored = blob_shape(blob);
  if (!stored.ok()) return stored.status().with_context(name);
  std::vector<float> values(value_count(blob));
  std::vector<int64_t> dims = stored->dims();
  if (dims.size() == 4 && dims[0] == 1) dims.erase(dims.begin());
  if (values.empty() || int64_t(values.size()) != stored->count() || dims.size() != 3) {
    return invalid_argument(
        fmt::format("{} holds {} values, which are not one image; make it with compute_image_mean",
                    name, values.size()));
  }
  CFT_TRY(blob_to_floats(blob, *stored, values).with_context(name));
  return MeanImage{Shape(std::move(dims)), std::move(values)};
}

Result<std::vector<float>> channel_means(std::span<const float> values, bool has_file,
                                         int64_t channels) {
  if (has_file && !values.empty()) {
    return invalid_argument(
        "transform_param: mean_file and mean_value are both given; keep one of them");
  }
  const auto given = int64_t(values.size());
  if (given > 1 && given != channels) {
    return invalid_argument(fmt::format(
        "transform_param: {} mean_values for {} channels; set one, or one for each channel", given,
        channels));
  }
  if (given > 1) return std::vector<float>(values.begin(), values.end());
  return std::vector<float>(size_t(channels), given == 1 ? values[0] : 0.F);
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
