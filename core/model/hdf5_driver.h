// SPDX-License-Identifier: Apache-2.0
// How the HDF5 library reads files here: through a driver of ours, which only reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/model/hdf5_handle.h"

namespace cafetiere {

/// The bytes of a file, in memory or on disk.
struct Hdf5Bytes {
  uint64_t size = 0;
  /// Copies `count` bytes from offset `at`, all of which lie below `size`; false when it cannot.
  std::function<bool(uint64_t at, size_t count, void* to)> read;
};

/// Opens an HDF5 file; a handle that is not ok() when it is none. The library's own drivers collect
/// metadata in a buffer that version 1.10 reads through a null pointer where a damaged file names an
/// address near 2^64 (github.com/HDFGroup/hdf5/issues/584); ours has no such buffer, refuses each
/// read outside of the file, ends the last name of a group, which that version may look for beyond
/// the group's names, and needs no copy of a file that is in memory.
Hdf5Handle open_hdf5(const Hdf5Bytes& bytes);

}  // namespace cafetiere
