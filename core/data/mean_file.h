// SPDX-License-Identifier: Apache-2.0
// Mean images: a BlobProto of one image, made by compute_image_mean.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace cafetiere {

struct MeanImage {
  Shape shape;  ///< channels, height, width
  std::vector<float> values;
};

/// The bytes of mean files by the names that nets have for them, in place of files of this machine.
using MeanFiles = std::map<std::string, std::string>;

/// The image of a file's bytes, with its shape in the old or the new format. An error has the name.
Result<MeanImage> parse_mean_image(const std::string& bytes, const std::string& name);

/// Reads one. An error names the file.
Result<MeanImage> read_mean_image(const std::string& path);

/// Writes one, in the old format, which every reader knows.
Status write_mean_image(const std::string& path, const MeanImage& image);

}  // namespace cafetiere
