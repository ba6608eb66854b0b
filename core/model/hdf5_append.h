// SPDX-License-Identifier: Apache-2.0
// An HDF5 file on disk whose datasets grow along axis 0.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// Not thread-safe. Appended data is on disk when append() returns.
class Hdf5Appender {
 public:
  /// Creates the file, replacing an existing one.
  static Result<std::unique_ptr<Hdf5Appender>> create(const std::string& path);
  ~Hdf5Appender();

  /// Appends rows to a dataset of floats, which the first call creates; later calls must have the
  /// same shape except for axis 0.
  Status append(const std::string& dataset, const Shape& shape, std::span<const float> values);

 private:
  struct File;
  explicit Hdf5Appender(std::unique_ptr<File> file);
  std::unique_ptr<File> file_;
};

}  // namespace cafetiere
