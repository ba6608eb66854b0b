// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/model/file.h"
#include "core/model/hdf5.h"
#include "core/model/hdf5_handle.h"
#include "core/model/hdf5_slab.h"

namespace cafetiere {
namespace {

constexpr size_t kGrowBytes = size_t{1} << 20;  // increment by which an in-memory file grows

/// A unique name for the in-memory file of `owner`. The library treats two open files of the same
/// name as one, and a file of that name on disk would be in the way.
std::string memory_name(const void* owner) { return fmt::format("/dev/null/{}", owner); }

/// Access properties of a file written to memory or to disk.
Hdf5Handle write_access(bool in_memory) {
  Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  if (in_memory) H5Pset_fapl_core(access.get(), kGrowBytes, 0);
  // Not every cluster file system supports locks, and nobody else opens a file before it is
  // renamed.
  if (!in_memory) H5Pset_file_locking(access.get(), false, true);
  return access;
}

/// The library ends names and texts at their first zero byte, which would change a longer one.
Status check_text(const std::string& text) {
  if (text.find('\0') == text.npos) return {};
  return invalid_argument("HDF5 holds no text with a zero byte: " + std::string(text.c_str()) +
                          "\\0...");
}

}  // namespace

struct Hdf5Writer::File {
  Hdf5Handle handle;
  Hdf5Handle make_groups;  // link properties: create intermediate groups
  Hdf5Handle untimed;      // dataset properties: no timestamps, so that equal contents give equal
                           // bytes

  explicit File(const std::string& path)
      : make_groups(H5Pcreate(H5P_LINK_CREATE), H5Pclose),
        untimed(H5Pcreate(H5P_DATASET_CREATE), H5Pclose) {
    const Hdf5Quiet quiet;
    const Hdf5Handle access = write_access(path.empty());
    const std::string name = path.empty() ? memory_name(this) : path;
    handle =
        Hdf5Handle(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
    H5Pset_create_intermediate_group(make_groups.get(), 1);
    H5Pset_obj_track_times(untimed.get(), false);
  }

  Result<Hdf5Handle> create(const std::string& path, hid_t type, const Shape& shape) {
    CFT_TRY(check_text(path));
    if (!handle.ok()) return io_error("the HDF5 library cannot create the file");
    const std::vector<hsize_t> dims(shape.dims().begin(), shape.dims().end());
    const Hdf5Handle space(H5Screate_simple(shape.axes(), dims.data(), nullptr), H5Sclose);
    Hdf5Handle dataset(H5Dcreate2(handle.get(), path.c_str(), type, space.get(), make_groups.get(),
                                  untimed.get(), H5P_DEFAULT),
                       H5Dclose);
    if (dataset.ok()) return dataset;
    return invalid_argument(fmt::format(
        "HDF5 dataset {} cannot be written; is there another layer or blob of that name?", path));
  }

  static Status written(const std::string& path, bool ok) {
    if (ok) return {};
    return io_error(fmt::format("HDF5 dataset {} cannot be written; is the disk full?", path));
  }

  Status write(const std::string& path, hid_t type, const Shape& shape, const void* data) {
    const Hdf5Quiet quiet;
    CFT_ASSIGN(const Hdf5Handle dataset, create(path, type, shape));
    return written(path, H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  }

  Status write(const std::string& path, const Shape& shape, const FloatPieces& values) {
    const Hdf5Quiet quiet;
    CFT_ASSIGN(const Hdf5Handle dataset, create(path, H5T_NATIVE_FLOAT, shape));
    const auto count = static_cast<size_t>(shape.count());
    std::vector<float> piece(std::min(count, kHdf5PieceFloats));
    for (size_t begin = 0; begin < count; begin += piece.size()) {
      piece.resize(std::min(piece.size(), count - begin));
      CFT_TRY(values(begin, piece));
      const auto write_slab = [&](hid_t memory, hid_t slab, size_t at) {
        return H5Dwrite(dataset.get(), H5T_NATIVE_FLOAT, memory, slab, H5P_DEFAULT, &piece[at]);
      };
      CFT_TRY(written(path, for_each_slab(dataset.get(), shape, begin, piece.size(), write_slab)));
    }
    return {};
  }
};

Hdf5Writer::Hdf5Writer(const std::string& path) : file_(std::make_unique<File>(path)) {}
Hdf5Writer::~Hdf5Writer() = default;

Status Hdf5Writer::group(const std::string& path) {
  const Hdf5Quiet quiet;
  CFT_TRY(check_text(path));
  const Hdf5Handle existing(H5Gopen2(file_->handle.get(), path.c_str(), H5P_DEFAULT), H5Gclose);
  if (existing.ok()) return {};
  const Hdf5Handle made(H5Gcreate2(file_->handle.get(), path.c_str(), file_->make_groups.get(),
                                   H5P_DEFAULT, H5P_DEFAULT),
                        H5Gclose);
  if (made.ok()) return {};
  return invalid_argument(
      fmt::format("HDF5 group {} cannot be created; is there a blob of that "
                  "name?",
                  path));
}

Status Hdf5Writer::floats(const std::string& path, const Shape& shape,
                          std::span<const float> values) {
  return file_->write(path, H5T_NATIVE_FLOAT, shape, values.data());
}

Status Hdf5Writer::floats(const std::string& path, const Shape& shape, const FloatPieces& values) {
  return file_->write(path, shape, values);
}

Status Hdf5Writer::integer(const std::string& path, int value) {
  return file_->write(path, H5T_NATIVE_INT, {1}, &value);
}

Status Hdf5Writer::string(const std::string& path, const std::string& value) {
  CFT_TRY(check_text(value));
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), value.size() + 1);
  return file_->write(path, type.get(), {}, value.c_str());
}

Status Hdf5Writer::close() {
  const Hdf5Quiet quiet;
  const bool flushed = H5Fflush(file_->handle.get(), H5F_SCOPE_GLOBAL) >= 0;
  file_->handle.reset();
  return flushed ? Status() : io_error("the HDF5 file cannot be written; is the disk full?");
}

Result<std::string> Hdf5Writer::finish() {
  const Hdf5Quiet quiet;
  H5Fflush(file_->handle.get(), H5F_SCOPE_GLOBAL);
  const ssize_t size = H5Fget_file_image(file_->handle.get(), nullptr, 0);
  if (size <= 0) return io_error("the HDF5 library cannot produce the file");
  std::string bytes(static_cast<size_t>(size), '\0');
  if (H5Fget_file_image(file_->handle.get(), bytes.data(), bytes.size()) < 0) {
    return io_error("the HDF5 library cannot produce the file");
  }
  return bytes;
}

Status replace_hdf5(const std::string& path, const std::function<Status(Hdf5Writer*)>& write) {
  const auto fill = [&](const std::string& aside) -> Status {
    Hdf5Writer file(aside);
    const Status written = write(&file);
    return (written.ok() ? file.close() : written).with_context(path);
  };
  return replace_file(path, fill);
}

}  // namespace cafetiere
