// SPDX-License-Identifier: Apache-2.0
#include "core/model/hdf5_driver.h"

#include <cstring>
#include <memory>
#include <set>
#include <span>

namespace cafetiere {
namespace {

/// An open file, as the H5FD_t that the library uses.
struct OpenFile : H5FD_t {
  Hdf5Bytes bytes;
  haddr_t used = 0;  // end of the file as the library sees it
  std::set<haddr_t> heap_ends;
};

OpenFile* ours(H5FD_t* file) { return static_cast<OpenFile*>(file); }
const OpenFile* ours(const H5FD_t* file) { return static_cast<const OpenFile*>(file); }

H5FD_t* open(const char*, unsigned, hid_t access, haddr_t) {
  auto file = std::make_unique<OpenFile>();
  file->bytes = **static_cast<const Hdf5Bytes* const*>(H5Pget_driver_info(access));
  return file.release();
}

herr_t close(H5FD_t* file) {
  delete ours(file);
  return 0;
}

herr_t set_used(H5FD_t* file, H5FD_mem_t, haddr_t used) {
  ours(file)->used = used;
  return 0;
}

bool read_bytes(const Hdf5Bytes& bytes, haddr_t at, size_t count, void* to) {
  return at <= bytes.size && count <= bytes.size - at && bytes.read(at, count, to);
}

uint64_t little_endian(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

/// Records the end of the local heap whose header starts `read`; false if the header is damaged.
/// See HDF5 file format 3.0, "Local Heaps" and "Superblock".
bool note_heap(OpenFile& file, haddr_t at, std::span<const uint8_t> read) {
  uint8_t super[7];  // from the superblock's version field on
  if (!read_bytes(file.bytes, file.base_addr + 8, sizeof super, super)) return false;
  const size_t offset_size = super[0] < 2 ? super[5] : super[1];
  const size_t length_size = super[0] < 2 ? super[6] : super[2];
  const size_t header = 8 + 2 * length_size + offset_size;
  if (offset_size > 8 || length_size > 8 || header > read.size()) return false;
  const uint64_t size = little_endian(read.subspan(8, length_size));
  const uint64_t names = little_endian(read.subspan(8 + 2 * length_size, offset_size));
  haddr_t begin = 0, end = 0;
  if (size == 0) return true;
  if (__builtin_add_overflow(names, file.base_addr, &begin) ||
      __builtin_add_overflow(begin, size, &end) || (begin < at + header && end > at)) {
    return false;
  }
  file.heap_ends.insert(end);
  return true;
}

/// The library assumes that the names in a local heap are C strings that end within it. So the last
/// byte of each heap is set to zero, which it is in every valid file.
bool end_names(OpenFile& file, haddr_t at, std::span<uint8_t> read) {
  const auto end = [&] {
    auto heap = file.heap_ends.upper_bound(at);
    for (; heap != file.heap_ends.end() && *heap - at <= read.size(); ++heap) {
      read[*heap - at - 1] = 0;
    }
  };
  end();
  if (read.size() < 4 || std::memcmp(read.data(), "HEAP", 4) != 0) return true;
  if (!note_heap(file, at, read)) return false;
  end();
  return true;
}

herr_t read(H5FD_t* file, H5FD_mem_t kind, hid_t, haddr_t at, size_t count, void* to) {
  if (!read_bytes(ours(file)->bytes, at, count, to)) return -1;
  if (kind != H5FD_MEM_LHEAP) return 0;
  return end_names(*ours(file), at, {static_cast<uint8_t*>(to), count}) ? 0 : -1;
}

/// The library treats files as the same if this is 0: two readers of one file share nothing.
int compare(const H5FD_t* a, const H5FD_t* b) { return a == b ? 0 : a < b ? -1 : 1; }

hid_t register_driver() {
  H5FD_class_t driver{};
  driver.name = "cafetiere";
  driver.maxaddr = HADDR_MAX;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(const Hdf5Bytes*);
  driver.open = open;
  driver.close = close;
  driver.cmp = compare;
  driver.get_eoa = [](const H5FD_t* file, H5FD_mem_t) { return ours(file)->used; };
  driver.set_eoa = set_used;
  driver.get_eof = [](const H5FD_t* file, H5FD_mem_t) { return haddr_t{ours(file)->bytes.size}; };
  driver.read = read;
  driver.write = [](H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) -> herr_t {
    return -1;
  };
  return H5FDregister(&driver);
}

}  // namespace

Hdf5Handle open_hdf5(const Hdf5Bytes& bytes) {
  static const hid_t driver = register_driver();
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  const Hdf5Bytes* const info = &bytes;
  H5Pset_driver(access.get(), driver, &info);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);  // even if a damaged object stays open
  return Hdf5Handle(H5Fopen("file", H5F_ACC_RDONLY, access.get()), H5Fclose);
}

}  // namespace cafetiere
