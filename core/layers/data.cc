// Data: batches of Datum records from an LMDB or LevelDB. Gives the images and, if asked, labels.
#include "core/layers/source.h"

namespace cafetiere {
namespace {

class Data : public SourceLayer {
 public:
  using SourceLayer::SourceLayer;

  Status declared(size_t, size_t, Shape&) const override {
    return invalid_argument("the shape of database '" + param().data_param().source() +
                            "' is not known: it could not be opened here");
  }
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
