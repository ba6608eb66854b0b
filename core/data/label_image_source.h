// SPDX-License-Identifier: Apache-2.0
// LabelImageSource: images with a label for each pixel, for SegNet's DenseImageData and DeepLab's
// ImageSegData.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/data/image.h"
#include "core/data/order.h"
#include "core/data/pair_list.h"
#include "core/data/source.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The layer whose fields and rules apply: SegNet's or DeepLab's.
enum class LabelImageForm { kDense, kSeg };

/// The settings of either layer in a common form.
struct LabelImageOptions {
  enum class Labels { kNone, kNumber, kImage };

  std::string layer, type;  ///< for messages
  std::string source, root, mean_file;
  int64_t batch = 0;
  uint32_t rand_skip = 0;
  bool shuffle = false;
  int64_t height = 0, width = 0;  ///< target size; 0 = no resizing
  ImageColor color = ImageColor::kColor;
  Labels labels = Labels::kImage;
  int ignore = 255;                         ///< label of padding
  int64_t crop_height = 0, crop_width = 0;  ///< 0 = none
  bool random_crop = false, mirror = false;
  bool pads = false;  ///< pad images smaller than the crop, on the right and below
  std::vector<float> scales, means;
  float scale = 1;
};

/// Crops an image and its label image equally. Reads them in list order, or reshuffled in each
/// epoch, and wraps around at the end. All must have the size of the first, unless they are resized
/// or cropped. Labels are raw gray values.
class LabelImageSource : public Source {
 public:
  /// `layer`: a layer of form `form`. Reads the first image.
  static Result<std::unique_ptr<LabelImageSource>> make(const caffe::LayerParameter& layer,
                                                        LabelImageForm form, bool train, int shards,
                                                        uint64_t seed, const Logger& log = {});

  /// Images (N, C, H, W), labels (N, 1, H, W); for ImageSegData also the sizes of the images (N, 1,
  /// 1, 2), clipped to the top.
  std::vector<Shape> top_shapes() const override;
  int64_t rows(int, int64_t) const override { return o_.batch; }
  Status fill(int shard, int64_t sub_step, std::span<float* const> tops) override;

 private:
  struct Pair {
    Image image, label;
  };
  /// Where a top begins in the image, and whether its columns are mirrored.
  struct Part {
    int64_t top = 0, left = 0;
    bool mirrored = false;
  };
  explicit LabelImageSource(LabelImageOptions options) : o_(std::move(options)) {}
  Status open(int shards, uint64_t seed, const Logger& log, size_t tops);
  Status check() const;
  Status set_means(const Shape& image);
  Result<Pair> load(const PairEntry& entry) const;
  Result<Image> label_of(const PairEntry& entry, const Image& image) const;
  Status check_size(const PairEntry& entry, const Image& image) const;
  Part choose(const Image& image, const std::array<uint32_t, 4>& words) const;
  void write(const Pair& pair, const Part& part, float* image, float* label) const;
  float mean(int64_t c, int64_t y, int64_t x) const;
  std::string where(const PairEntry& entry) const;

  LabelImageOptions o_;
  size_t tops_ = 2;
  int64_t skip_ = 0;
  int64_t channels_ = 0, height_ = 0, width_ = 0;  // of the top
  Shape first_;                                    // the first image
  std::vector<float> mean_image_;                  // of an image before cropping; empty if there is
                                                   // none
  std::vector<PairEntry> entries_;
  std::vector<EpochOrder> orders_;  // per shard
  uint64_t key_ = 0;
};

}  // namespace cafetiere
