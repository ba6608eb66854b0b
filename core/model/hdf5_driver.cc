#include "core/model/hdf5_driver.h"

#include <memory>

namespace cafetiere {
namespace {

/// What the library sees as H5FD_t.
struct OpenFile : H5FD_t {
  Hdf5Bytes bytes;
  haddr_t used = 0;  // up to where the library believes that the file reaches
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

herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t count, void* to) {
  const Hdf5Bytes& bytes = ours(file)->bytes;
  const bool inside = at <= bytes.size && count <= bytes.size - at;
  return inside && bytes.read(at, count, to) ? 0 : -1;
}

/// Files are the same to the library when this is 0: two readers of one file share nothing.
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
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);  // even when a damaged object stays open
  return Hdf5Handle(H5Fopen("file", H5F_ACC_RDONLY, access.get()), H5Fclose);
}

}  // namespace cafetiere
