#include "core/model/hdf5.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/model/hdf5_handle.h"

namespace cafetiere {
namespace {

using Handle = Hdf5Handle;
using Quiet = Hdf5Quiet;

constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
constexpr size_t kGrowBytes = size_t{1} << 20;  // how an in-memory file grows

/// A name for the file in memory that `owner` holds. The library takes two open files of one name
/// for the same one, and a file on disk of that name would be in the way.
std::string memory_name(const void* owner) { return fmt::format("/dev/null/{}", owner); }

/// Access properties of a file that lives in memory only.
Handle memory_access() {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.get(), kGrowBytes, 0);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);  // even when a damaged object stays open
  return access;
}

Shape dataset_shape(const Handle& dataset) {
  const Handle space(H5Dget_space(dataset.get()), H5Sclose);
  const int axes = std::max(H5Sget_simple_extent_ndims(space.get()), 0);
  std::vector<hsize_t> dims(static_cast<size_t>(axes));
  H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
  return Shape(std::vector<int64_t>(dims.begin(), dims.end()));
}

/// Whether what is stored can be as much as the shape says, so that a damaged header does not make
/// us reserve terabytes. Compression saves a factor of 1032 at most.
bool is_credible(const Handle& dataset) {
  const uint64_t stored = H5Dget_storage_size(dataset.get());
  const Handle space(H5Dget_space(dataset.get()), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  return count >= 0 && static_cast<uint64_t>(count) / 1032 <= stored;
}

/// Names of the links of a group that lead to objects of `kind`.
std::vector<std::string> members(hid_t file, const std::string& path, H5O_type_t kind) {
  const Quiet quiet;
  std::vector<std::string> names;
  const Handle group(H5Gopen2(file, path.c_str(), H5P_DEFAULT), H5Gclose);
  H5G_info_t info;
  if (!group.ok() || H5Gget_info(group.get(), &info) < 0) return names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const auto name_of = [&](char* buffer, size_t size) {
      return H5Lget_name_by_idx(group.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, buffer, size,
                                H5P_DEFAULT);
    };
    const ssize_t size = name_of(nullptr, 0);
    if (size <= 0) continue;
    std::string name(static_cast<size_t>(size), '\0');
    name_of(name.data(), name.size() + 1);
    H5O_info_t object;
    if (H5Oget_info_by_name(group.get(), name.c_str(), &object, H5P_DEFAULT) >= 0 &&
        object.type == kind) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace

bool is_hdf5(std::string_view bytes) { return bytes.starts_with(kSignature); }

struct Hdf5Reader::File {
  Handle handle;
  std::string source;

  Status error(const std::string& path, std::string_view what) const {
    return invalid_argument(fmt::format("{}: dataset {} {}", source, path, what));
  }
};

Hdf5Reader::Hdf5Reader(std::unique_ptr<File> file) : file_(std::move(file)) {}
Hdf5Reader::~Hdf5Reader() = default;
Hdf5Reader::Hdf5Reader(Hdf5Reader&&) noexcept = default;
Hdf5Reader& Hdf5Reader::operator=(Hdf5Reader&&) noexcept = default;

Result<Hdf5Reader> Hdf5Reader::open(std::string_view bytes, std::string source) {
  const Quiet quiet;
  auto file = std::make_unique<File>();
  file->source = std::move(source);
  const Handle access = memory_access();
  // The library copies the image; it only declares the pointer as writable.
  H5Pset_file_image(access.get(), const_cast<char*>(bytes.data()), bytes.size());
  file->handle =
      Handle(H5Fopen(memory_name(file.get()).c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  if (!file->handle.ok()) {
    return invalid_argument(file->source + ": is not an HDF5 file, or is damaged");
  }
  return Hdf5Reader(std::move(file));
}

Result<Hdf5Reader> Hdf5Reader::open_file(const std::string& path) {
  const Quiet quiet;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return not_found("File not found: " + path);
  auto file = std::make_unique<File>();
  file->source = path;
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  file->handle = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  if (!file->handle.ok()) return invalid_argument(path + ": is not an HDF5 file, or is damaged");
  return Hdf5Reader(std::move(file));
}

std::vector<std::string> Hdf5Reader::groups(const std::string& path) const {
  return members(file_->handle.get(), path, H5O_TYPE_GROUP);
}

std::vector<std::string> Hdf5Reader::datasets(const std::string& path) const {
  return members(file_->handle.get(), path, H5O_TYPE_DATASET);
}

Result<Shape> Hdf5Reader::shape(const std::string& path) const {
  const Quiet quiet;
  const Handle dataset(H5Dopen2(file_->handle.get(), path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.ok()) return file_->error(path, "is missing");
  if (!is_credible(dataset)) return file_->error(path, "has fewer values than its shape says");
  return dataset_shape(dataset);
}

Result<Hdf5Floats> Hdf5Reader::floats(const std::string& path) const {
  const Quiet quiet;
  const Handle dataset(H5Dopen2(file_->handle.get(), path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.ok()) return file_->error(path, "is missing");
  Hdf5Floats out;
  if (!is_credible(dataset)) return file_->error(path, "has fewer values than its shape says");
  out.shape = dataset_shape(dataset);
  out.values.resize(static_cast<size_t>(out.shape.count()));
  if (H5Dread(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.values.data()) <
      0) {
    return file_->error(path, "does not hold numbers");
  }
  return out;
}

Result<int> Hdf5Reader::integer(const std::string& path) const {
  const Quiet quiet;
  const Handle dataset(H5Dopen2(file_->handle.get(), path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.ok()) return file_->error(path, "is missing");
  int value = 0;
  if (dataset_shape(dataset).count() != 1 ||
      H5Dread(dataset.get(), H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0) {
    return file_->error(path, "is not one integer");
  }
  return value;
}

Result<std::string> Hdf5Reader::string(const std::string& path) const {
  const Quiet quiet;
  const Handle dataset(H5Dopen2(file_->handle.get(), path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.ok()) return file_->error(path, "is missing");
  const Handle type(H5Dget_type(dataset.get()), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) > 0 ||
      dataset_shape(dataset).count() != 1) {
    return file_->error(path, "is not a string of fixed length");
  }
  std::string value(H5Tget_size(type.get()), '\0');
  if (H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, value.data()) < 0) {
    return file_->error(path, "cannot be read");
  }
  value.resize(std::min(value.find('\0'), value.size()));
  return value;
}

struct Hdf5Writer::File {
  Handle handle;
  Handle make_groups;  // link properties: create the groups on the way

  File() : make_groups(H5Pcreate(H5P_LINK_CREATE), H5Pclose) {
    const Quiet quiet;
    const Handle access = memory_access();
    handle = Handle(H5Fcreate(memory_name(this).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()),
                    H5Fclose);
    H5Pset_create_intermediate_group(make_groups.get(), 1);
  }

  Status write(const std::string& path, hid_t type, const Shape& shape, const void* data) {
    const Quiet quiet;
    const std::vector<hsize_t> dims(shape.dims().begin(), shape.dims().end());
    const Handle space(H5Screate_simple(shape.axes(), dims.data(), nullptr), H5Sclose);
    const Handle dataset(H5Dcreate2(handle.get(), path.c_str(), type, space.get(),
                                    make_groups.get(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Dclose);
    if (!dataset.ok() || H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0) {
      return invalid_argument(
          fmt::format("HDF5 dataset {} cannot be written; is there another "
                      "layer or blob of that name?",
                      path));
    }
    return {};
  }
};

Hdf5Writer::Hdf5Writer() : file_(std::make_unique<File>()) {}
Hdf5Writer::~Hdf5Writer() = default;

Status Hdf5Writer::group(const std::string& path) {
  const Quiet quiet;
  const Handle existing(H5Gopen2(file_->handle.get(), path.c_str(), H5P_DEFAULT), H5Gclose);
  if (existing.ok()) return {};
  const Handle made(H5Gcreate2(file_->handle.get(), path.c_str(), file_->make_groups.get(),
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

Status Hdf5Writer::integer(const std::string& path, int value) {
  return file_->write(path, H5T_NATIVE_INT, {1}, &value);
}

Status Hdf5Writer::string(const std::string& path, const std::string& value) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), value.size() + 1);
  return file_->write(path, type.get(), {}, value.c_str());
}

Result<std::string> Hdf5Writer::finish() {
  const Quiet quiet;
  H5Fflush(file_->handle.get(), H5F_SCOPE_GLOBAL);
  const ssize_t size = H5Fget_file_image(file_->handle.get(), nullptr, 0);
  if (size <= 0) return io_error("the HDF5 library cannot produce the file");
  std::string bytes(static_cast<size_t>(size), '\0');
  if (H5Fget_file_image(file_->handle.get(), bytes.data(), bytes.size()) < 0) {
    return io_error("the HDF5 library cannot produce the file");
  }
  return bytes;
}

}  // namespace cafetiere
