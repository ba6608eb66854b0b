// SPDX-License-Identifier: Apache-2.0
// ImageListSource: the batches of Caffe's ImageData layer, from a list of image files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/data/image.h"
#include "core/data/image_batch.h"
#include "core/data/image_list.h"
#include "core/data/order.h"
#include "core/data/source.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Reads images in list order, or reshuffled in each epoch, and wraps around at the end; batches
/// are always full. With rand_skip, the first epoch begins at a random index below that number. All
/// images must have the shape of the first one, unless they are resized or cropped.
class ImageListSource : public Source {
 public:
  /// `layer`: an ImageData layer with two tops (images, labels). `train` decides where transforms
  /// crop. Reads the first image.
  static Result<std::unique_ptr<ImageListSource>> make(const caffe::LayerParameter& layer,
                                                       bool train, int shards, uint64_t seed,
                                                       const Logger& log = {});

  std::vector<Shape> top_shapes() const override { return batch_->top_shapes(); }
  int64_t rows(int, int64_t) const override { return batch_->rows(); }
  Status fill(int shard, int64_t sub_step, std::span<float* const> tops) override;

 private:
  struct Reader {
    EpochOrder order;
    std::vector<uint8_t> planes;
  };
  ImageListSource() = default;
  Status open(const caffe::LayerParameter& layer, bool train, int shards, uint64_t seed,
              const Logger& log);
  Status check(const caffe::LayerParameter& layer) const;
  /// The image of an entry, resized according to the layer.
  Result<Image> load(const ImageEntry& entry) const;
  Status fill_row(Reader& reader, const ImageEntry& entry, const RowPosition& position,
                  float* out) const;
  std::string where(const ImageEntry& entry) const;

  std::string layer_, source_, root_;
  int64_t skip_ = 0;
  int height_ = 0, width_ = 0;  // target size; 0 = no resizing
  ImageColor color_ = ImageColor::kColor;
  std::vector<ImageEntry> entries_;
  std::optional<ImageBatch> batch_;  // empty until the first image has been read
  std::vector<Reader> readers_;      // per shard
};

}  // namespace cafetiere
