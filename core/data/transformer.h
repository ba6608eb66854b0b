// SPDX-License-Identifier: Apache-2.0
// Transformer: crop, mirror, mean and scale, as transform_param says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// Where a row stands in the training; its random choices depend on this and the seed alone.
struct RowPosition {
  int64_t sub_step = 0;
  int shard = 0;
  int64_t row = 0;  ///< within the shard's batch
};

/// Turns one planar image into floats: (pixel - mean) * scale of a window of it, mirrored or not.
/// The window is random in training and central in testing; the mean is subtracted at the place
/// the pixel came from. Immutable, so any thread may use it.
class Transformer {
 public:
  /// `image`: channels, height and width of what apply() gets. With fewer axes it is plain numbers:
  /// they have one channel, and only scale and one mean_value make sense.
  static Result<Transformer> make(const caffe::TransformationParameter& param, bool train,
                                  const Shape& image, uint64_t seed);

  /// The image's shape, its height and width replaced by crop_size if there is one.
  const Shape& out_shape() const { return out_shape_; }

  /// Whether images of another shape than make()'s can be given too: those that a crop makes equal.
  bool accepts(const Shape& image) const;

  /// `pixels` need not be aligned; out_shape().count() floats are written.
  void apply(std::span<const uint8_t> pixels, const RowPosition& position, float* out) const;
  /// The same for an image of a shape that is accepted.
  void apply(std::span<const uint8_t> pixels, const Shape& image, const RowPosition& position,
             float* out) const;
  /// The same for float pixels, given by their bytes.
  void apply_floats(std::span<const std::byte> pixels, const RowPosition& position,
                    float* out) const;

 private:
  struct Window {
    int64_t top = 0, left = 0;
    bool mirrored = false;
  };
  Transformer() = default;
  Status set_image(const caffe::TransformationParameter& param, const Shape& image);
  Status set_mean(const caffe::TransformationParameter& param);
  Status load_mean(const std::string& path);
  Window choose_window(int64_t height, int64_t width, const RowPosition& position) const;
  template <class T>
  void transform(const std::byte* pixels, int64_t height, int64_t width,
                 const RowPosition& position, float* out) const;

  int64_t channels_ = 1, height_ = 1, width_ = 1;
  int64_t out_height_ = 1, out_width_ = 1;
  Shape out_shape_;
  bool cropped_ = false;
  bool random_crop_ = false;
  bool mirror_ = false;
  float scale_ = 1;
  std::vector<float> channel_means_;  // one a channel; zeros when a mean image is used
  std::vector<float> mean_image_;     // of the uncropped image; empty when there is none
  uint64_t key_ = 0;
};

}  // namespace cafetiere
