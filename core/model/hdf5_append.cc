// SPDX-License-Identifier: Apache-2.0
#include "core/model/hdf5_append.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/model/hdf5_handle.h"

namespace cafetiere {
namespace {

constexpr hsize_t kChunkFloats = 1 << 18;  // per chunk: 1 MiB

std::vector<hsize_t> dims_of(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

/// Properties of a dataset with chunks of whole rows and without a creation time.
Hdf5Handle chunked(std::vector<hsize_t> dims) {
  hsize_t row = 1;
  for (size_t i = 1; i < dims.size(); ++i) row *= dims[i];
  dims[0] = std::max<hsize_t>(1, kChunkFloats / std::max<hsize_t>(row, 1));
  for (hsize_t& d : dims) d = std::max<hsize_t>(d, 1);
  Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties.get(), false);
  H5Pset_chunk(properties.get(), static_cast<int>(dims.size()), dims.data());
  return properties;
}

}  // namespace

struct Hdf5Appender::File {
  struct Dataset {
    Hdf5Handle handle;
    Shape shape;
  };
  std::string path;
  Hdf5Handle handle;
  std::map<std::string, Dataset> datasets;  // declared after `handle`, so that they are closed
                                            // before it

  Status error(const std::string& dataset, std::string_view what) const {
    return io_error(fmt::format("{}: dataset {} {}", path, dataset, what));
  }

  /// Creates a dataset without rows.
  Status create(const std::string& name, Shape shape) {
    shape[0] = 0;
    const std::vector<hsize_t> dims = dims_of(shape);
    std::vector<hsize_t> limits = dims;
    limits[0] = H5S_UNLIMITED;
    const Hdf5Handle space(H5Screate_simple(shape.axes(), dims.data(), limits.data()), H5Sclose);
    Hdf5Handle dataset(H5Dcreate2(handle.get(), name.c_str(), H5T_NATIVE_FLOAT, space.get(),
                                  H5P_DEFAULT, chunked(dims).get(), H5P_DEFAULT),
                       H5Dclose);
    if (!dataset.ok()) return error(name, "cannot be created");
    datasets.emplace(name, Dataset{std::move(dataset), std::move(shape)});
    return {};
  }

  Status grow(const std::string& name, Dataset& dataset, const Shape& rows, const float* values) {
    std::vector<hsize_t> start(static_cast<size_t>(rows.axes()), 0);
    start[0] = static_cast<hsize_t>(dataset.shape[0]);
    dataset.shape[0] += rows[0];
    const std::vector<hsize_t> whole = dims_of(dataset.shape), part = dims_of(rows);
    if (H5Dset_extent(dataset.handle.get(), whole.data()) < 0) return error(name, "cannot grow");
    const Hdf5Handle in_file(H5Dget_space(dataset.handle.get()), H5Sclose);
    const Hdf5Handle in_memory(H5Screate_simple(rows.axes(), part.data(), nullptr), H5Sclose);
    if (H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, start.data(), nullptr, part.data(),
                            nullptr) < 0 ||
        H5Dwrite(dataset.handle.get(), H5T_NATIVE_FLOAT, in_memory.get(), in_file.get(),
                 H5P_DEFAULT, values) < 0 ||
        H5Fflush(handle.get(), H5F_SCOPE_LOCAL) < 0) {
      return error(name, "cannot be written; is the disk full?");
    }
    return {};
  }
};

Hdf5Appender::Hdf5Appender(std::unique_ptr<File> file) : file_(std::move(file)) {}
Hdf5Appender::~Hdf5Appender() {
  const Hdf5Quiet quiet;
  file_.reset();
}

Result<std::unique_ptr<Hdf5Appender>> Hdf5Appender::create(const std::string& path) {
  const Hdf5Quiet quiet;
  auto file = std::make_unique<File>();
  file->path = path;
  file->handle =
      Hdf5Handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  if (!file->handle.ok()) {
    return io_error(path + ": cannot create it; make sure that its folder exists and is writable");
  }
  return std::unique_ptr<Hdf5Appender>(new Hdf5Appender(std::move(file)));
}

Status Hdf5Appender::append(const std::string& name, const Shape& shape,
                            std::span<const float> values) {
  const Hdf5Quiet quiet;
  if (shape.axes() < 1) return file_->error(name, "needs at least one axis");
  if (!file_->datasets.contains(name)) CFT_TRY(file_->create(name, shape));
  File::Dataset& dataset = file_->datasets.at(name);
  Shape same = shape;
  same[0] = dataset.shape[0];
  if (same != dataset.shape) {
    return file_->error(name, fmt::format("holds {}, so {} cannot be added to it",
                                          dataset.shape.str(), shape.str()));
  }
  return shape.count() == 0 ? Status() : file_->grow(name, dataset, shape, values.data());
}

}  // namespace cafetiere
