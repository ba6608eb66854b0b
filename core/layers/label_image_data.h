// SPDX-License-Identifier: Apache-2.0
// LabelImageData: a source of images with label images. `Fields::of` returns its parameters.
#pragma once

#include "core/data/label_image_source.h"
#include "core/layers/source.h"

namespace cafetiere {

template <class Fields>
class LabelImageData : public FileLayer {
 public:
  using FileLayer::FileLayer;
  const std::string& source() const override { return Fields::of(param()).source(); }
  int64_t batch_size() const override { return Fields::of(param()).batch_size(); }
  bool takes_rows() const override { return false; }
  Status become_rows(const RowForms&, caffe::LayerParameter*) const override {
    return internal_error("no rows stand for images and their label images");
  }
  std::optional<Shape> stated_row(size_t) const override { return std::nullopt; }
};

template <LabelImageForm kForm>
Result<std::unique_ptr<Source>> open_label_images(const caffe::LayerParameter& param,
                                                  const SourceOptions& o) {
  return as_source(LabelImageSource::make(param, kForm, o.train, o.shards, o.seed, o.log));
}

}  // namespace cafetiere
