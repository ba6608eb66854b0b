// SPDX-License-Identifier: Apache-2.0
// Data: batches of Datum records from an LMDB or LevelDB. Gives the images and, if asked, labels.
#include "core/layers/source.h"

namespace cafetiere {
namespace {

class Data : public FileLayer {
 public:
  using FileLayer::FileLayer;
  const std::string& source() const override { return param().data_param().source(); }
};

}  // namespace

extern const LayerType layer_data{.name = "Data",
                                  .min_bottoms = 0,
                                  .max_bottoms = 0,
                                  .min_tops = 1,
                                  .max_tops = 2,
                                  .create = create_layer<Data>,
                                  .source = true};

}  // namespace cafetiere
