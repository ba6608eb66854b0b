// SPDX-License-Identifier: Apache-2.0
// Transformer: crop, mirror, mean and scale, according to transform_param.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/data/mean_file.h"
#include "core/data/random_size.h"
#include "core/model/proto/caffe.pb.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// A row's position in the training run; its random choices depend only on this and the seed.
struct RowPosition {
  int64_t sub_step = 0;
  int shard = 0;
  int64_t row = 0;  ///< within the shard's batch
};

/// Converts a planar image to floats: (pixel - mean) * scale over a window of it, possibly
/// mirrored. The window is random in training and central in testing; a pixel's mean is that of its
/// position in the full image. Immutable and thread-safe.
class Transformer {
 public:
  /// `image`: channels, height and width of apply()'s input. With fewer axes it is plain numbers of
  /// one channel, for which only scale and one mean_value are valid. `mean` replaces the file named
  /// by mean_file; null: read that file.
  static Result<Transformer> make(const caffe::TransformationParameter& param, bool train,
                                  const Shape& image, uint64_t seed,
                                  const MeanImage* mean = nullptr);

  /// The image's shape, with height and width replaced by crop_size if that is set.
  const Shape& out_shape() const { return out_shape_; }

  /// Whether images of this shape are accepted: that of make(), or any shape that a crop makes
  /// equal.
  bool accepts(const Shape& image) const;
  /// Whether images are first resized at random, which is possible only for bytes.
  bool resizes() const { return random_size_.has_value(); }

  /// `pixels` need not be aligned; out_shape().count() floats are written.
  void apply(std::span<const uint8_t> pixels, const RowPosition& position, float* out) const;
  /// The same for an image of an accepted shape.
  void apply(std::span<const uint8_t> pixels, const Shape& image, const RowPosition& position,
             float* out) const;
  /// The same for float pixels, passed as bytes.
  void apply_floats(std::span<const std::byte> pixels, const RowPosition& position,
                    float* out) const;

 private:
  struct Window {
    int64_t top = 0, left = 0;
    bool mirrored = false;
  };
  Transformer() = default;
  Status set_image(const caffe::TransformationParameter& param, const Shape& image);
  Status set_mean(const caffe::TransformationParameter& param, const MeanImage* given);
  Status load_mean(const std::string& path, const MeanImage* given);
  Window choose_window(int64_t height, int64_t width, const RowPosition& position) const;
  template <class T>
  void transform(const std::byte* pixels, int64_t height, int64_t width,
                 const RowPosition& position, float* out) const;

  std::optional<RandomSize> random_size_;
  int64_t channels_ = 1, height_ = 1, width_ = 1;
  int64_t out_height_ = 1, out_width_ = 1;
  Shape out_shape_;
  bool cropped_ = false;
  bool random_crop_ = false;
  bool mirror_ = false;
  float scale_ = 1;
  std::vector<float> channel_means_;  // per channel; zeros if a mean image is used
  std::vector<float> mean_image_;     // of the uncropped image; empty if there is none
  uint64_t key_ = 0;
};

}  // namespace cafetiere
