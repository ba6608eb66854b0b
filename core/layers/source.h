// SPDX-License-Identifier: Apache-2.0
// SourceLayer: the base of layers whose tops are fed from outside (Input, Data, ImageData).
#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>

#include "core/data/source.h"
#include "core/graph/layer.h"

namespace cafetiere {

class SourceLayer : public Layer {
 public:
  using Layer::Layer;

  /// Sets `shape` to the shape that the net declares for a top, including the batch axis.
  virtual Status declared(size_t top, size_t tops, Shape& shape) const = 0;

  Status shape(LayerShapes& s) const override {
    for (size_t i = 0; i < s.tops.size(); ++i) {
      if (i < s.fed.size())
        s.tops[i] = s.fed[i];
      else
        CFT_TRY(declared(i, s.tops.size(), s.tops[i]));
      for (int64_t dim : s.tops[i].dims()) {
        if (dim < 0) return invalid_argument("a dimension is negative: " + s.tops[i].str());
      }
      if (s.batch > 0 && s.tops[i].axes() > 0) s.tops[i][0] = s.batch;
    }
    return {};
  }
  /// A source's tops are inputs of the plan, which creates them.
  Status forward(LoweringContext&) const override { return {}; }
  Status backward(LoweringContext&) const override { return {}; }
};

/// The contents of the column that feeds a top: numbers of this shape, or encoded images (the bytes
/// of image files) that decode to this shape.
struct RowForm {
  Shape shape = {};
  bool encoded = false;
};

/// Keyed by top.
using RowForms = std::map<std::string, RowForm>;

/// What a program needs to read a layer's files itself; fields the layer lacks are "" or 0.
struct FileNames {
  std::string source = {}, backend = {}, root_folder = {};
  int64_t channels = 0, height = 0, width = 0;  ///< of the decoded images
};

/// A source whose shapes come from the file or database it names, not from the net.
class FileLayer : public SourceLayer {
 public:
  using SourceLayer::SourceLayer;

  /// `source` in the layer's message.
  virtual const std::string& source() const = 0;
  /// Rows of a batch.
  virtual int64_t batch_size() const = 0;
  /// The shape of one row of a top if the net determines it without the files.
  virtual std::optional<Shape> stated_row(size_t top) const = 0;

  virtual FileNames names() const { return {.source = source()}; }
  /// Whether rows of a table can replace the files.
  virtual bool takes_rows() const { return true; }
  /// Turns `layer`, which is this layer, into one that is fed with rows, with the same name, tops
  /// and transformations; `forms` contains its first top.
  virtual Status become_rows(const RowForms& forms, caffe::LayerParameter* layer) const = 0;

  Status declared(size_t, size_t, Shape&) const override {
    return invalid_argument("the shape of '" + source() +
                            "' is not known: it could not be opened here");
  }

 protected:
  /// become_rows() for images followed by a label.
  Status become_images(const RowForms& forms, caffe::LayerParameter* layer) const {
    const RowForm& form = forms.at(layer->top(0));
    const Shape& shape = form.shape;
    if (shape.axes() != 3 || batch_size() < 1) {
      return invalid_argument(fmt::format(
          "layer '{}' ({}) takes images of channels, height and width, in batches of "
          "at least one; it gets rows of the shape {} in batches of {}: set its batch_size, "
          "and feed it images",
          layer->name(), layer->type(), shape.str(), batch_size()));
    }
    layer->set_type("MemoryData");
    caffe::MemoryDataParameter& p = *layer->mutable_memory_data_param();
    p.set_batch_size(uint32_t(batch_size()));
    p.set_channels(uint32_t(shape[0]));
    p.set_height(uint32_t(shape[1]));
    p.set_width(uint32_t(shape[2]));
    if (form.encoded) p.set_image_encoded(true);
    return {};
  }

  /// The shape of an image (top 0) or of its label.
  std::optional<Shape> stated_image(size_t top, int64_t channels, int64_t height,
                                    int64_t width) const {
    if (top > 0) return Shape{};
    const int64_t crop = param().transform_param().crop_size();
    if (crop > 0) height = width = crop;
    if (channels == 0 || height == 0 || width == 0) return std::nullopt;
    return Shape{channels, height, width};
  }
};

/// Converts the result of a source's make() to that of LayerType::open.
template <class S>
Result<std::unique_ptr<Source>> as_source(Result<std::unique_ptr<S>> source) {
  if (!source.ok()) return source.status();
  return std::unique_ptr<Source>(*std::move(source));
}

}  // namespace cafetiere
