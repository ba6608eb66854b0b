// SPDX-License-Identifier: Apache-2.0
// Ranges of a dataset's values, in row-major order, as box selections of the HDF5 library.
#pragma once

#include <cstddef>
#include <functional>

#include "core/model/hdf5_handle.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// Splits values [begin, begin + count) of `dataset`, which has `shape`, into boxes and calls `io`
/// for each with a data space for memory, one for the file, and the offset of its first value from
/// `begin`. False as soon as the library fails or `io` returns a negative value.
bool for_each_slab(hid_t dataset, const Shape& shape, size_t begin, size_t count,
                   const std::function<herr_t(hid_t memory, hid_t slab, size_t at)>& io);

}  // namespace cafetiere
