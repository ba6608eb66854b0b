// SPDX-License-Identifier: Apache-2.0
#include "core/data/hdf5_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/base/philox.h"
#include "core/model/file.h"

namespace cafetiere {

Result<std::unique_ptr<Hdf5Source>> Hdf5Source::make(const caffe::LayerParameter& layer, int shards,
                                                     uint64_t seed, const Logger& log) {
  std::unique_ptr<Hdf5Source> source(new Hdf5Source());
  const Status status = source->open(layer, shards, seed, log);
  if (status.ok()) return source;
  return status.with_context(fmt::format("layer \"{}\" (HDF5Data)", layer.name()));
}

Status Hdf5Source::open(const caffe::LayerParameter& layer, int shards, uint64_t seed,
                        const Logger& log) {
  const caffe::HDF5DataParameter& param = layer.hdf5_data_param();
  layer_ = layer.name(), source_ = param.source(), batch_ = param.batch_size();
  tops_.assign(layer.top().begin(), layer.top().end());
  shuffle_ = param.shuffle(), key_ = Philox::key(seed, "hdf5");
  if (layer.has_transform_param()) {
    return invalid_argument("HDF5Data does not transform data; remove transform_param");
  }
  if (tops_.empty()) return invalid_argument("it has no tops; name one for each dataset");
  if (source_.empty()) return invalid_argument("hdf5_data_param has no source; list the files");
  if (batch_ < 1) return invalid_argument("hdf5_data_param has no batch_size; set it to 1 or more");
  log.info("Loading list of HDF5 filenames from: {}", source_);
  CFT_TRY(list_files());
  log.info("Number of HDF5 files: {}", files_.size());
  const EpochOrder files(static_cast<int64_t>(files_.size()), shuffle_, key_);
  readers_.assign(static_cast<size_t>(shards), Reader{files, -1, {}, {}});
  return {};
}

Status Hdf5Source::list_files() {
  CFT_ASSIGN(const std::string text, read_file(source_));
  std::istringstream words(text);
  std::string path;
  while (words >> path) CFT_TRY(add_file(path).with_context(source_));
  if (files_.empty()) return invalid_argument(source_ + ": no files are listed");
  if (total_ == 0) return invalid_argument(source_ + ": the listed files have no rows");
  return {};
}

Status Hdf5Source::add_file(const std::string& path) {
  CFT_ASSIGN(const Hdf5Reader file, Hdf5Reader::open_file(path));
  Table table{path, 0};
  CFT_TRY(check_file(file, path, &table.rows));
  total_ += table.rows;
  files_.push_back(std::move(table));
  return {};
}

Status Hdf5Source::check_file(const Hdf5Reader& file, const std::string& path, int64_t* rows) {
  for (size_t i = 0; i < tops_.size(); ++i) {
    CFT_ASSIGN(const Shape shape, file.shape(tops_[i]));
    if (shape.axes() < 1) {
      return invalid_argument(fmt::format(
          "{}: dataset {} is a single number; its axis 0 must be the rows", path, tops_[i]));
    }
    if (i > 0 && shape[0] != *rows) {
      return invalid_argument(
          fmt::format("{}: dataset {} has {} rows, but {} has {}; make them equal", path, tops_[i],
                      shape[0], tops_[0], *rows));
    }
    *rows = shape[0];
    Shape row(std::vector<int64_t>(shape.dims().begin() + 1, shape.dims().end()));
    if (row_shapes_.size() == i) row_shapes_.push_back(row);
    if (row != row_shapes_[i]) {
      return invalid_argument(
          fmt::format("{}: rows of dataset {} have the shape {}, but {} in {}; make them equal",
                      path, tops_[i], row.str(), row_shapes_[i].str(), files_[0].path));
    }
  }
  return {};
}

std::vector<Shape> Hdf5Source::top_shapes() const {
  std::vector<Shape> shapes;
  for (const Shape& row : row_shapes_) {
    std::vector<int64_t> dims = {batch_};
    dims.insert(dims.end(), row.dims().begin(), row.dims().end());
    shapes.emplace_back(std::move(dims));
  }
  return shapes;
}

Status Hdf5Source::fill(int shard, int64_t sub_step, std::span<float* const> tops) {
  Reader& reader = readers_[static_cast<size_t>(shard)];
  const auto shards = static_cast<int64_t>(readers_.size());
  for (int64_t j = 0; j < batch_; ++j) {
    const Result<int64_t> row = seek(reader, sequence_position(sub_step, j, batch_, shard, shards));
    if (!row.ok()) return row.status().with_context(fmt::format("layer \"{}\" (HDF5Data)", layer_));
    for (size_t i = 0; i < tops.size(); ++i) {
      const int64_t size = row_shapes_[i].count();
      std::copy_n(reader.columns[i].values.data() + *row * size, size, tops[i] + j * size);
    }
  }
  return {};
}

Result<int64_t> Hdf5Source::seek(Reader& reader, int64_t position) const {
  const int64_t epoch = position / total_;
  int64_t row = position % total_;
  int64_t file = reader.files.at(epoch, 0);
  for (int64_t i = 1; row >= files_[static_cast<size_t>(file)].rows; ++i) {
    row -= files_[static_cast<size_t>(file)].rows;
    file = reader.files.at(epoch, i);
  }
  if (reader.file != file) CFT_TRY(load(reader, file));
  return reader.rows.at(epoch, row);
}

Status Hdf5Source::load(Reader& reader, int64_t index) const {
  const Table& table = files_[static_cast<size_t>(index)];
  reader.file = -1;
  reader.columns.clear();  // free it before the next file is loaded
  CFT_ASSIGN(const Hdf5Reader file, Hdf5Reader::open_file(table.path));
  for (size_t i = 0; i < tops_.size(); ++i) {
    CFT_ASSIGN(Hdf5Floats column, file.floats(tops_[i]));
    if (column.shape.axes() < 1 || column.shape[0] != table.rows ||
        column.shape.count(1) != row_shapes_[i].count()) {
      return io_error(
          fmt::format("{}: dataset {} changed while it was in use", table.path, tops_[i]));
    }
    reader.columns.push_back(std::move(column));
  }
  reader.rows = EpochOrder(table.rows, shuffle_, key_, static_cast<uint32_t>(index) + 1);
  reader.file = index;
  return {};
}

}  // namespace cafetiere
