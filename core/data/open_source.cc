// SPDX-License-Identifier: Apache-2.0
#include "core/data/open_source.h"

#include <string>

#include "core/data/db_source.h"
#include "core/data/hdf5_source.h"
#include "core/data/image_list_source.h"
#include "core/data/window_source.h"

namespace cafetiere {
namespace {

template <class S>
Result<std::unique_ptr<Source>> as_source(Result<std::unique_ptr<S>> source) {
  if (!source.ok()) return source.status();
  return std::unique_ptr<Source>(*std::move(source));
}

}  // namespace

Result<std::unique_ptr<Source>> open_source(const caffe::LayerParameter& layer, bool train,
                                            int shards, uint64_t seed, const Logger& log) {
  const std::string& type = layer.type();
  if (type == "Data") return as_source(DbSource::make(layer, train, shards, seed, log));
  if (type == "ImageData") return as_source(ImageListSource::make(layer, train, shards, seed, log));
  if (type == "HDF5Data") return as_source(Hdf5Source::make(layer, shards, seed, log));
  if (type == "WindowData") return as_source(WindowSource::make(layer, shards, seed, log));
  return std::unique_ptr<Source>();
}

}  // namespace cafetiere
