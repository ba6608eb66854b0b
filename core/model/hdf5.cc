// SPDX-License-Identifier: Apache-2.0
#include "core/model/hdf5.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/model/hdf5_driver.h"
#include "core/model/hdf5_slab.h"

namespace cafetiere {
namespace {

using Handle = Hdf5Handle;
using Quiet = Hdf5Quiet;

constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
constexpr size_t kMaxNumberBytes = 16;
constexpr uint64_t kMaxChunkBytes = uint64_t{64} << 20;  // or the size of the dataset, if larger
constexpr uint64_t kMaxCompression = 1032;               // maximum compression ratio of gzip
constexpr uint64_t kMinLinkBytes = 8;                    // minimum size of a link in its group,
                                                         // including its name
constexpr std::string_view kTooLarge = "has chunks that are larger than itself";
constexpr std::string_view kTooFew = "has fewer values than its shape says";

/// Access properties of groups or datasets that do not follow links into other files.
Handle inside_access(hid_t kind) {
  Handle access(H5Pcreate(kind), H5Pclose);
  const H5L_elink_traverse_t refuse = [](const char*, const char*, const char*, const char*,
                                         unsigned*, hid_t, void*) -> herr_t { return -1; };
  H5Pset_elink_cb(access.get(), refuse, nullptr);
  return access;
}

/// The shape of a dataset; empty if it is not representable.
std::optional<Shape> shape_of(hid_t dataset) {
  const Handle space(H5Dget_space(dataset), H5Sclose);
  const int axes = std::max(H5Sget_simple_extent_ndims(space.get()), 0);
  std::vector<hsize_t> dims(static_cast<size_t>(axes));
  if (H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr) < 0) return {};
  int64_t count = 1;
  for (const hsize_t dim : dims) {
    if (dim > INT64_MAX || __builtin_mul_overflow(count, static_cast<int64_t>(dim), &count)) {
      return {};
    }
  }
  return Shape(std::vector<int64_t>(dims.begin(), dims.end()));
}

/// Why a dataset's values cannot be read from its own file; "" if they can. Values in other files
/// are not read, and a filter in a damaged file may request any amount of memory. The dataset
/// occupies `stored` of the file's `file_bytes`.
std::string_view fault_of_storage(hid_t dataset, uint64_t dataset_bytes, uint64_t stored,
                                  uint64_t file_bytes) {
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose);
  const H5D_layout_t layout = H5Pget_layout(properties.get());
  if (layout == H5D_VIRTUAL || H5Pget_external_count(properties.get()) != 0) {
    return "stores its values in other files; copy them into this one";
  }
  // The library copies a compact dataset's values from the header without checking their number,
  // and a damaged header must not make us allocate terabytes. Only chunked data can be compressed.
  if (stored > file_bytes ||
      dataset_bytes / (layout == H5D_CHUNKED ? kMaxCompression : 1) > stored) {
    return kTooFew;
  }
  if (layout != H5D_CHUNKED) return "";
  for (int i = 0; i < H5Pget_nfilters(properties.get()); ++i) {
    size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(properties.get(), static_cast<unsigned>(i), nullptr,
                                               &values, nullptr, 0, nullptr, nullptr);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
        filter != H5Z_FILTER_FLETCHER32) {
      return "is compressed by an unsupported filter; use gzip or none";
    }
  }
  hsize_t chunk[H5S_MAX_RANK];
  const int axes = H5Pget_chunk(properties.get(), H5S_MAX_RANK, chunk);
  const Handle type(H5Dget_type(dataset), H5Tclose);
  uint64_t chunk_bytes = H5Tget_size(type.get());
  for (int i = 0; i < axes; ++i) {
    if (__builtin_mul_overflow(chunk_bytes, uint64_t{chunk[i]}, &chunk_bytes)) return kTooLarge;
  }
  return chunk_bytes > std::max(dataset_bytes, kMaxChunkBytes) ? kTooLarge : "";
}

/// Whether all bit fields of an integer or float type lie within it.
bool has_sound_bits(hid_t type) {
  const size_t bits = 8 * H5Tget_size(type), precision = H5Tget_precision(type);
  const int offset = H5Tget_offset(type);
  const H5T_order_t order = H5Tget_order(type);
  if (bits > 8 * kMaxNumberBytes || precision == 0 || precision > bits || offset < 0 ||
      size_t(offset) > bits - precision || (order != H5T_ORDER_LE && order != H5T_ORDER_BE)) {
    return false;
  }
  if (H5Tget_class(type) != H5T_FLOAT) return true;
  size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  const auto within = [bits](size_t at, size_t count) { return at <= bits && count <= bits - at; };
  return H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
         within(sign, 1) && within(exponent, exponent_bits) && within(mantissa, mantissa_bits) &&
         exponent_bits > 0 && exponent_bits < 64 && mantissa_bits > 0;
}

/// The names of the links in a group to objects of `kind`.
std::vector<std::string> members(hid_t file, hsize_t file_bytes, const std::string& path,
                                 H5O_type_t kind) {
  const Quiet quiet;
  std::vector<std::string> names;
  const Handle access = inside_access(H5P_GROUP_ACCESS), link = inside_access(H5P_LINK_ACCESS);
  const Handle group(H5Gopen2(file, path.c_str(), access.get()), H5Gclose);
  H5G_info_t info;
  if (!group.ok() || H5Gget_info(group.get(), &info) < 0) return names;
  const hsize_t links = std::min<hsize_t>(info.nlinks, file_bytes / kMinLinkBytes);
  for (hsize_t i = 0; i < links; ++i) {
    const auto name_of = [&](char* buffer, size_t size) {
      return H5Lget_name_by_idx(group.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, buffer, size,
                                H5P_DEFAULT);
    };
    const ssize_t size = name_of(nullptr, 0);
    if (size <= 0) break;  // damaged: the group has fewer links than it declares
    std::string name(static_cast<size_t>(size), '\0');
    name_of(name.data(), name.size() + 1);
    H5O_info_t object;
    if (H5Oget_info_by_name(group.get(), name.c_str(), &object, link.get()) >= 0 &&
        object.type == kind) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace

bool is_hdf5(std::string_view bytes) { return bytes.starts_with(kSignature); }

bool is_hdf5_file(const std::string& path) {
  std::string bytes(kSignature.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(bytes.data(), std::streamsize(bytes.size())).good() && is_hdf5(bytes);
}

struct Hdf5Reader::File {
  Handle handle;
  std::string source;
  hsize_t bytes = 0;
  uint64_t unclaimed = 0;  // bytes of the file not yet claimed by a dataset

  Status error(const std::string& path, std::string_view what) const {
    return invalid_argument(fmt::format("{}: dataset {} {}", source, path, what));
  }

  struct Dataset {
    Handle handle, type;
    Shape shape;
    uint64_t stored = 0;  // bytes in the file

    /// A type whose bit fields lie within it: the library does not check this itself.
    bool is_number() const {
      const H5T_class_t kind = H5Tget_class(type.get());
      if (kind == H5T_ENUM) {
        const Handle base(H5Tget_super(type.get()), H5Tclose);
        return has_sound_bits(base.get());
      }
      return (kind == H5T_INTEGER || kind == H5T_FLOAT) && has_sound_bits(type.get());
    }
  };

  /// Opens a dataset and checks its metadata against the file.
  Result<Dataset> open_dataset(const std::string& path) const {
    const Handle access = inside_access(H5P_DATASET_ACCESS);
    Dataset dataset;
    dataset.handle = Handle(H5Dopen2(handle.get(), path.c_str(), access.get()), H5Dclose);
    const hid_t id = dataset.handle.get();
    if (!dataset.handle.ok()) return error(path, "is missing");
    dataset.type = Handle(H5Dget_type(id), H5Tclose);
    std::optional<Shape> shape = shape_of(id);
    uint64_t value_bytes = 0;
    const bool fits =
        shape && !__builtin_mul_overflow(uint64_t(shape->count()), H5Tget_size(dataset.type.get()),
                                         &value_bytes);
    dataset.stored = H5Dget_storage_size(id);
    if (!fits) return error(path, kTooFew);
    const std::string_view fault = fault_of_storage(id, value_bytes, dataset.stored, bytes);
    if (!fault.empty()) return error(path, fault);
    dataset.shape = *std::move(shape);
    return dataset;
  }
};

Hdf5Reader::Hdf5Reader(std::unique_ptr<File> file) : file_(std::move(file)) {}
Hdf5Reader::~Hdf5Reader() = default;
Hdf5Reader::Hdf5Reader(Hdf5Reader&&) noexcept = default;
Hdf5Reader& Hdf5Reader::operator=(Hdf5Reader&&) noexcept = default;

Result<Hdf5Reader> Hdf5Reader::open(std::string_view bytes, std::string source) {
  const auto read = [bytes](uint64_t at, size_t count, void* to) {
    std::memcpy(to, bytes.data() + at, count);
    return true;
  };
  return open(Hdf5Bytes{bytes.size(), read}, std::move(source));
}

Result<Hdf5Reader> Hdf5Reader::open_file(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory) return not_found("File not found: " + path);
  if (error) return io_error(fmt::format("{}: cannot be read: {}", path, error.message()));
  auto file = std::make_shared<std::ifstream>(path, std::ios::binary);
  const auto read = [file](uint64_t at, size_t count, void* to) {
    file->clear();  // clear earlier errors
    file->seekg(static_cast<std::streamoff>(at));
    file->read(static_cast<char*>(to), static_cast<std::streamsize>(count));
    return file->good();
  };
  return open(Hdf5Bytes{size, read}, path);
}

Result<Hdf5Reader> Hdf5Reader::open(const Hdf5Bytes& bytes, std::string source) {
  const Quiet quiet;
  auto file = std::make_unique<File>();
  file->source = std::move(source);
  file->handle = open_hdf5(bytes);
  if (!file->handle.ok()) {
    return invalid_argument(file->source + ": is not an HDF5 file, or is damaged");
  }
  H5Fget_filesize(file->handle.get(), &file->bytes);
  file->unclaimed = file->bytes;
  return Hdf5Reader(std::move(file));
}

std::vector<std::string> Hdf5Reader::groups(const std::string& path) const {
  return members(file_->handle.get(), file_->bytes, path, H5O_TYPE_GROUP);
}

std::vector<std::string> Hdf5Reader::datasets(const std::string& path) const {
  return members(file_->handle.get(), file_->bytes, path, H5O_TYPE_DATASET);
}

std::optional<uint64_t> Hdf5Reader::address(const std::string& path) const {
  const Quiet quiet;
  const Handle link = inside_access(H5P_LINK_ACCESS);
  H5O_info_t object;
  if (H5Oget_info_by_name(file_->handle.get(), path.c_str(), &object, link.get()) < 0) return {};
  return object.addr;
}

Result<Shape> Hdf5Reader::shape(const std::string& path) const {
  const Quiet quiet;
  CFT_ASSIGN(File::Dataset dataset, file_->open_dataset(path));
  return std::move(dataset.shape);
}

Result<Hdf5Floats> Hdf5Reader::floats(const std::string& path) const {
  Hdf5Floats out;
  CFT_ASSIGN(out.shape, claim(path));
  out.values.resize(static_cast<size_t>(out.shape.count()));
  CFT_TRY(read(path, 0, out.values));
  return out;
}

Result<Shape> Hdf5Reader::claim(const std::string& path) const {
  const Quiet quiet;
  CFT_ASSIGN(File::Dataset dataset, file_->open_dataset(path));
  if (!dataset.is_number()) return file_->error(path, "does not hold numbers");
  // Otherwise many datasets that refer to the same few bytes could take any amount of memory.
  if (dataset.stored > file_->unclaimed) {
    return file_->error(path, "shares its values with another dataset; write the file again");
  }
  file_->unclaimed -= dataset.stored;
  return std::move(dataset.shape);
}

Status Hdf5Reader::read(const std::string& path, size_t begin, std::span<float> out) const {
  const Quiet quiet;
  CFT_ASSIGN(const File::Dataset dataset, file_->open_dataset(path));
  const auto count = static_cast<size_t>(dataset.shape.count());
  if (!dataset.is_number() || begin > count || out.size() > count - begin) {
    return file_->error(path, "does not hold the requested values");
  }
  if (for_each_slab(dataset.handle.get(), dataset.shape, begin, out.size(),
                    [&](hid_t memory, hid_t slab, size_t at) {
                      return H5Dread(dataset.handle.get(), H5T_NATIVE_FLOAT, memory, slab,
                                     H5P_DEFAULT, out.data() + at);
                    })) {
    return {};
  }
  return file_->error(path, "cannot be read; it may be damaged");
}

Result<int> Hdf5Reader::integer(const std::string& path) const {
  const Quiet quiet;
  CFT_ASSIGN(const File::Dataset dataset, file_->open_dataset(path));
  int value = 0;
  if (!dataset.is_number() || dataset.shape.count() != 1 ||
      H5Dread(dataset.handle.get(), H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0) {
    return file_->error(path, "is not one integer");
  }
  return value;
}

Result<std::string> Hdf5Reader::string(const std::string& path) const {
  const Quiet quiet;
  CFT_ASSIGN(const File::Dataset dataset, file_->open_dataset(path));
  const hid_t type = dataset.type.get();
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) > 0 ||
      dataset.shape.count() != 1) {
    return file_->error(path, "is not a string of fixed length");
  }
  std::string value(H5Tget_size(type), '\0');
  if (H5Dread(dataset.handle.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value.data()) < 0) {
    return file_->error(path, "cannot be read");
  }
  value.resize(std::min(value.find('\0'), value.size()));
  return value;
}

}  // namespace cafetiere
