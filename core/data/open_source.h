// SPDX-License-Identifier: Apache-2.0
// Which source feeds which layer type.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/data/source.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Opens what a Data, ImageData, HDF5Data or WindowData layer names, for `shards` shards; null for
/// all other types. `train`: the net's phase. Errors begin with the layer's name.
Result<std::unique_ptr<Source>> open_source(const caffe::LayerParameter& layer, bool train,
                                            int shards, uint64_t seed, const Logger& log);

}  // namespace cafetiere
