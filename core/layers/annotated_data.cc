// SPDX-License-Identifier: Apache-2.0
// AnnotatedData (SSD): batches of images from a database, with the boxes of their objects. Tops:
// images (N, C, H, W); objects (1, 1, R, 8): image, label, instance, x1, y1, x2, y2, difficult.
// Unused rows at the end are filled with -1.
#include "core/data/annotated_source.h"
#include "core/layers/source.h"

namespace cafetiere {
namespace {

class AnnotatedData : public FileLayer {
 public:
  using FileLayer::FileLayer;
  const std::string& source() const override { return param().data_param().source(); }
  int64_t batch_size() const override { return param().data_param().batch_size(); }
  bool takes_rows() const override { return false; }
  Status become_rows(const RowForms&, caffe::LayerParameter*) const override {
    return internal_error("no rows stand for images with boxes");
  }
  std::optional<Shape> stated_row(size_t) const override { return std::nullopt; }

  /// The objects of all images are rows of one blob, whose first axis is not the batch axis.
  Status shape(LayerShapes& s) const override {
    CFT_TRY(FileLayer::shape(s));
    if (s.tops.size() > 1 && s.fed.size() > 1) s.tops[1] = s.fed[1];
    return {};
  }
};

}  // namespace

extern const LayerType layer_annotated_data{
    .name = "AnnotatedData",
    .min_bottoms = 0,
    .max_bottoms = 0,
    .max_tops = 2,
    .create = create_layer<AnnotatedData>,
    .source = true,
    .open = [](const caffe::LayerParameter& param, const SourceOptions& o) {
      return as_source(AnnotatedSource::make(param, o.train, o.shards, o.seed, o.log));
    }};

}  // namespace cafetiere
