// SPDX-License-Identifier: Apache-2.0
#include "core/model/hdf5_slab.h"

#include <algorithm>
#include <vector>

namespace cafetiere {
namespace {

struct Slab {
  std::vector<hsize_t> start, count;
  size_t size = 1;
};

/// The largest box that starts at value `at` and has at most `most` values.
Slab slab_at(const Shape& shape, size_t at, size_t most) {
  const auto axes = static_cast<size_t>(shape.axes());
  Slab slab{std::vector<hsize_t>(axes), std::vector<hsize_t>(axes, 1), 1};
  for (size_t axis = axes; axis-- > 0;) {
    const auto size = static_cast<size_t>(shape[static_cast<int>(axis)]);
    slab.start[axis] = at % size;
    at /= size;
  }
  for (size_t axis = axes; axis-- > 0;) {
    const auto size = static_cast<size_t>(shape[static_cast<int>(axis)]);
    const size_t rows = std::min<size_t>(size - slab.start[axis], most / slab.size);
    slab.count[axis] = rows;
    slab.size *= rows;
    if (rows < size) break;  // the outer axes must first advance to their next value
  }
  return slab;
}

}  // namespace

bool for_each_slab(hid_t dataset, const Shape& shape, size_t begin, size_t count,
                   const std::function<herr_t(hid_t memory, hid_t slab, size_t at)>& io) {
  if (shape.axes() == 0) return count == 0 || io(H5S_ALL, H5S_ALL, 0) >= 0;
  const Hdf5Handle file(H5Dget_space(dataset), H5Sclose);
  for (size_t at = 0; at < count;) {
    const Slab slab = slab_at(shape, begin + at, count - at);
    const hsize_t size = slab.size;
    const Hdf5Handle memory(H5Screate_simple(1, &size, nullptr), H5Sclose);
    if (H5Sselect_hyperslab(file.get(), H5S_SELECT_SET, slab.start.data(), nullptr,
                            slab.count.data(), nullptr) < 0 ||
        io(memory.get(), file.get(), at) < 0) {
      return false;
    }
    at += slab.size;
  }
  return true;
}

}  // namespace cafetiere
