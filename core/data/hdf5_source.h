// SPDX-License-Identifier: Apache-2.0
// Hdf5Source: the batches of Caffe's HDF5Data layer, from a list of HDF5 files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/data/order.h"
#include "core/data/source.h"
#include "core/model/hdf5.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Each top is the dataset of its name; rows lie along axis 0, which must have equal length in all
/// datasets of a file. Batches cross file boundaries and wrap around at the end. With shuffle,
/// every epoch has a different order of files, and of the rows within each file. Each shard holds
/// one file in memory at a time.
class Hdf5Source : public Source {
 public:
  /// `layer`: an HDF5Data layer. Reads the sizes of all files.
  static Result<std::unique_ptr<Hdf5Source>> make(const caffe::LayerParameter& layer, int shards,
                                                  uint64_t seed, const Logger& log = {});

  std::vector<Shape> top_shapes() const override;
  int64_t rows(int, int64_t) const override { return batch_; }
  Status fill(int shard, int64_t sub_step, std::span<float* const> tops) override;

 private:
  struct Table {
    std::string path;
    int64_t rows;
  };
  /// A shard's reader.
  struct Reader {
    EpochOrder files;
    int64_t file = -1;  ///< the file in memory
    EpochOrder rows;    ///< of that file
    std::vector<Hdf5Floats> columns;
  };
  Hdf5Source() = default;
  Status open(const caffe::LayerParameter& layer, int shards, uint64_t seed, const Logger& log);
  /// Reads the source's list of paths, separated by white space.
  Status list_files();
  Status add_file(const std::string& path);
  Status check_file(const Hdf5Reader& file, const std::string& path, int64_t* rows);
  /// Loads the file that contains a position into the reader; returns the row within it.
  Result<int64_t> seek(Reader& reader, int64_t position) const;
  Status load(Reader& reader, int64_t file) const;

  std::string layer_, source_;
  std::vector<std::string> tops_;
  std::vector<Shape> row_shapes_;  // per top
  int64_t batch_ = 0;
  bool shuffle_ = false;
  uint64_t key_ = 0;
  std::vector<Table> files_;
  int64_t total_ = 0;  // rows of all files
  std::vector<Reader> readers_;
};

}  // namespace cafetiere
