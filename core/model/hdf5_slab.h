// SPDX-License-Identifier: Apache-2.0
// Stretches of a dataset's values, in row-major order, as the boxes that the HDF5 library selects.
#pragma once

#include <cstddef>
#include <functional>

#include "core/model/hdf5_handle.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// Cuts values [begin, begin + count) of `dataset`, which has `shape`, into boxes and calls `io` with
/// a data space of each for memory and one for the file, and the place of its first value, counted
/// from `begin`. False as soon as the library refuses or `io` returns less than 0.
bool for_each_slab(hid_t dataset, const Shape& shape, size_t begin, size_t count,
                   const std::function<herr_t(hid_t memory, hid_t slab, size_t at)>& io);

}  // namespace cafetiere
