// SPDX-License-Identifier: Apache-2.0
// A read-only file driver for the HDF5 library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/model/hdf5_handle.h"

namespace cafetiere {

/// The bytes of a file, in memory or on disk.
struct Hdf5Bytes {
  uint64_t size = 0;
  /// Copies `count` bytes from offset `at`, all of them below `size`; false on failure.
  std::function<bool(uint64_t at, size_t count, void* to)> read;
};

/// Opens an HDF5 file; the handle is not ok() if it is not one. The library's own drivers collect
/// metadata in a buffer that version 1.10 reads through a null pointer if a damaged file contains
/// an address near 2^64 (github.com/HDFGroup/hdf5/issues/584). This driver has no such buffer,
/// rejects reads outside the file, terminates the last name of a group, which that version may
/// otherwise search beyond the group's names, and needs no copy of a file in memory.
Hdf5Handle open_hdf5(const Hdf5Bytes& bytes);

}  // namespace cafetiere
