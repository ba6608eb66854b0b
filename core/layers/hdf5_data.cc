// SPDX-License-Identifier: Apache-2.0
// HDF5Data: batches of rows from HDF5 files, with a top for each dataset, of the same name.
#include "core/data/hdf5_source.h"
#include "core/layers/source.h"

namespace cafetiere {
namespace {

class HDF5Data : public FileLayer {
 public:
  using FileLayer::FileLayer;
  const std::string& source() const override { return param().hdf5_data_param().source(); }
  int64_t batch_size() const override { return param().hdf5_data_param().batch_size(); }
  std::optional<Shape> stated_row(size_t) const override { return std::nullopt; }
  Status become_rows(const RowForms& forms, caffe::LayerParameter* layer) const override {
    if (batch_size() < 1) return invalid_argument("hdf5_data_param: set batch_size to 1 or more");
    layer->set_type("Input");
    layer->clear_hdf5_data_param();
    for (const std::string& top : layer->top()) {
      caffe::BlobShape* shape = layer->mutable_input_param()->add_shape();
      shape->add_dim(batch_size());
      const auto form = forms.find(top);
      if (form == forms.end()) continue;
      for (const int64_t dim : form->second.shape.dims()) shape->add_dim(dim);
    }
    return {};
  }
};

}  // namespace

extern const LayerType layer_hdf5_data{
    .name = "HDF5Data",
    .min_bottoms = 0,
    .max_bottoms = 0,
    .max_tops = -1,
    .create = create_layer<HDF5Data>,
    .source = true,
    .open = [](const caffe::LayerParameter& param, const SourceOptions& o) {
      return as_source(Hdf5Source::make(param, o.shards, o.seed, o.log));
    }};

}  // namespace cafetiere
