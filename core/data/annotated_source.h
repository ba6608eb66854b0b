// SPDX-License-Identifier: Apache-2.0
// AnnotatedSource: the batches of SSD's AnnotatedData layer: images with the boxes of their
// objects.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/data/annotated_boxes.h"
#include "core/data/db_records.h"
#include "core/data/image.h"
#include "core/data/image_resample.h"
#include "core/data/source.h"
#include "core/data/transformer.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Reads AnnotatedDatum records in the order of DbRecords. Each image is distorted, expanded,
/// cropped by one of its samplers, resized, cropped and mirrored, with random choices that depend
/// on its position in the training; its objects are transformed with it. Second top (1, 1, R, 8):
/// image in the batch, label, instance, x1, y1, x2, y2, difficult. R is large enough for a batch of
/// the records with the most objects; unused rows at the end are -1.
class AnnotatedSource : public Source {
 public:
  /// `layer`: an AnnotatedData layer with one or two tops. `train` decides where transform_param
  /// crops. Scans all records for their number of objects.
  static Result<std::unique_ptr<AnnotatedSource>> make(const caffe::LayerParameter& layer,
                                                       bool train, int shards, uint64_t seed,
                                                       const Logger& log = {});

  std::vector<Shape> top_shapes() const override;
  int64_t rows(int, int64_t) const override { return batch_; }
  Status fill(int shard, int64_t sub_step, std::span<float* const> tops) override;

 private:
  struct Row {
    Image image;
    std::vector<AnnotatedBox> objects;
  };
  AnnotatedSource() = default;
  Status open(const caffe::LayerParameter& layer, bool train, int shards, uint64_t seed,
              const Logger& log);
  Status check() const;
  Status count_objects();
  Result<Row> parse(const DbCursor& cursor) const;
  Status change(Draws& draws, Row* row) const;
  void expand(Draws& draws, Row* row) const;
  void crop_to(const Box& part, Row* row) const;
  Status crop_and_mirror(Draws& draws, Row* row) const;
  Status fill_row(int shard, int64_t sub_step, int64_t j, float* image, std::vector<float>* labels);

  std::string layer_;
  caffe::TransformationParameter transform_;
  caffe::AnnotatedDataParameter annotated_;
  bool train_ = false, labels_ = false;
  int64_t batch_ = 0, room_ = 1;  // maximum number of objects per record
  int64_t crop_height_ = 0, crop_width_ = 0;
  Shape shape_;  // of an image in the top
  std::optional<Resizer> resizer_;
  std::optional<Transformer> pixels_;  // mean and scale
  std::optional<DbRecords> records_;
  uint64_t key_ = 0;
};

}  // namespace cafetiere
