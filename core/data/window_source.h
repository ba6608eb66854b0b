// SPDX-License-Identifier: Apache-2.0
// WindowSource: the batches of Caffe's WindowData layer: rectangles of images, for detection.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/data/image.h"
#include "core/data/source.h"
#include "core/data/window_list.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Draws windows with replacement: first background windows (label 0), whose overlap is below
/// bg_threshold, then a fraction fg_fraction of windows with an object, whose overlap is at least
/// fg_threshold. Each is warped to crop_size x crop_size, with context_pad pixels of surroundings
/// on each side; pixels outside the image are 0. As in Caffe, crop_size, mirror and the mean are
/// from transform_param, but the scale is from window_data_param.
class WindowSource : public Source {
 public:
  /// `layer`: a WindowData layer with two tops (windows, labels).
  static Result<std::unique_ptr<WindowSource>> make(const caffe::LayerParameter& layer, int shards,
                                                    uint64_t seed, const Logger& log = {});

  std::vector<Shape> top_shapes() const override;
  int64_t rows(int, int64_t) const override { return batch_; }
  Status fill(int shard, int64_t sub_step, std::span<float* const> tops) override;

 private:
  /// The mean of the pixels: none, one value per channel, or an image, used around the crop's
  /// center.
  struct Mean {
    std::vector<float> values;
    int64_t height = 0, width = 0;  ///< of a mean image; 0 = one value per channel
    int64_t offset = 0;
    float at(int64_t c, int64_t y, int64_t x) const;
  };
  WindowSource() = default;
  Status open(const caffe::LayerParameter& layer, uint64_t seed, const Logger& log);
  Status check(const caffe::LayerParameter& layer) const;
  Status divide(const caffe::WindowDataParameter& param);
  Status set_mean(const caffe::TransformationParameter& param);
  Result<Image> load(int image) const;
  Status fill_row(const Window& window, bool mirrored, float* out) const;
  std::string where(const Window& window) const;

  std::string layer_, source_, root_;
  int64_t batch_ = 0, foreground_rows_ = 0;
  int64_t channels_ = 0;
  int crop_ = 0, pad_ = 0;
  bool square_ = false, mirror_ = false;
  float scale_ = 1;
  Mean mean_;
  WindowList list_;
  std::vector<int> foreground_, background_;  // indices into list_.windows
  std::vector<std::string> cached_;           // each image's file contents, if cached
  uint64_t key_ = 0;
};

}  // namespace cafetiere
