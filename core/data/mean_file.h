// SPDX-License-Identifier: Apache-2.0
// Mean images: a BlobProto of one image, made by compute_image_mean.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace cafetiere {

struct MeanImage {
  Shape shape;  ///< channels, height, width
  std::vector<float> values;
};

/// The contents of mean files by the names that nets use, replacing files of this machine.
using MeanFiles = std::map<std::string, std::string>;

/// Parses a mean file, with its shape in the old or the new format. Errors contain `name`.
Result<MeanImage> parse_mean_image(const std::string& bytes, const std::string& name);

/// Reads a mean file. Errors name the file.
Result<MeanImage> read_mean_image(const std::string& path);

/// A mean for each channel: `values` has none (all means are 0), one, or one for each. An error if
/// there are other numbers of them, or if a mean file is given as well.
Result<std::vector<float>> channel_means(std::span<const float> values, bool has_file,
                                         int64_t channels);

/// Writes a mean file in the old format, which every reader supports.
Status write_mean_image(const std::string& path, const MeanImage& image);

}  // namespace cafetiere
