// SPDX-License-Identifier: Apache-2.0
// WindowData: batches of windows of images, for detection. Tops: the windows and their labels.
#include "core/data/window_source.h"
#include "core/layers/source.h"

namespace cafetiere {
namespace {

class WindowData : public FileLayer {
 public:
  using FileLayer::FileLayer;
  const std::string& source() const override { return param().window_data_param().source(); }
  int64_t batch_size() const override { return param().window_data_param().batch_size(); }
  bool takes_rows() const override { return false; }
  Status become_rows(const RowForms&, caffe::LayerParameter*) const override {
    return internal_error("no rows stand for windows in images");
  }
  std::optional<Shape> stated_row(size_t top) const override { return stated_image(top, 3, 0, 0); }
};

}  // namespace

extern const LayerType layer_window_data{
    .name = "WindowData",
    .min_bottoms = 0,
    .max_bottoms = 0,
    .min_tops = 2,
    .max_tops = 2,
    .create = create_layer<WindowData>,
    .source = true,
    .open = [](const caffe::LayerParameter& param, const SourceOptions& o) {
      return as_source(WindowSource::make(param, o.shards, o.seed, o.log));
    }};

}  // namespace cafetiere
