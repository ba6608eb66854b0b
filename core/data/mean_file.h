// SPDX-License-Identifier: Apache-2.0
// Mean images: a BlobProto of one image, made by compute_image_mean.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace cafetiere {

struct MeanImage {
  Shape shape;  ///< channels, height, width
  std::vector<float> values;
};

/// Reads one, with its shape in the old or the new format. An error names the file.
Result<MeanImage> read_mean_image(const std::string& path);

/// Writes one, in the old format, which every reader knows.
Status write_mean_image(const std::string& path, const MeanImage& image);

}  // namespace cafetiere
