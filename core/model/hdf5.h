// SPDX-License-Identifier: Apache-2.0
// HDF5 files, in memory and on disk: reading and writing groups with float and integer datasets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace cafetiere {

struct Hdf5Bytes;

/// Whether `bytes` start with the HDF5 signature.
bool is_hdf5(std::string_view bytes);
/// The same for a file; false if it cannot be read.
bool is_hdf5_file(const std::string& path);

/// Maximum number of values per piece when values are written in pieces.
inline constexpr size_t kHdf5PieceFloats = size_t{1} << 20;

/// Provides floats [begin, begin + out.size()) of an array.
using FloatPieces = std::function<Status(size_t begin, std::span<float> out)>;

/// A dataset read as floats, whatever its number type.
struct Hdf5Floats {
  Shape shape;
  std::vector<float> values;
};

/// An HDF5 file open for reading, from memory or disk. Paths are separated by '/'.
class Hdf5Reader {
 public:
  /// `bytes` must outlive the reader; `source` names the file in errors.
  static Result<Hdf5Reader> open(std::string_view bytes, std::string source);
  /// Reads from disk as needed: for files larger than memory. "File not found: F" if the file does
  /// not exist.
  static Result<Hdf5Reader> open_file(const std::string& path);
  ~Hdf5Reader();
  Hdf5Reader(Hdf5Reader&&) noexcept;
  Hdf5Reader& operator=(Hdf5Reader&&) noexcept;

  /// The names of the groups, or datasets, in a group, in the order of the file's index; empty if
  /// the group does not exist.
  std::vector<std::string> groups(const std::string& path) const;
  std::vector<std::string> datasets(const std::string& path) const;

  /// The address of a group or dataset in the file, equal for all links to it. Empty if there is no
  /// such object.
  std::optional<uint64_t> address(const std::string& path) const;

  /// The shape of a dataset, of any type.
  Result<Shape> shape(const std::string& path) const;
  Result<Hdf5Floats> floats(const std::string& path) const;
  /// The shape of a numeric dataset that will be read. An error if the datasets claimed so far are
  /// larger than the file, which means that they share bytes.
  Result<Shape> claim(const std::string& path) const;
  /// Floats [begin, begin + out.size()) of a dataset, in row-major order.
  Status read(const std::string& path, size_t begin, std::span<float> out) const;
  Result<int> integer(const std::string& path) const;
  Result<std::string> string(const std::string& path) const;

 private:
  struct File;
  static Result<Hdf5Reader> open(const Hdf5Bytes& bytes, std::string source);
  explicit Hdf5Reader(std::unique_ptr<File> file);
  std::unique_ptr<File> file_;
};

/// An HDF5 file open for writing. Creates intermediate groups of a path.
class Hdf5Writer {
 public:
  /// Writes to memory or, given a path, directly to disk, of any size (replace_file()).
  explicit Hdf5Writer(const std::string& path = "");
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  Status group(const std::string& path);
  Status floats(const std::string& path, const Shape& shape, std::span<const float> values);
  /// The same in pieces of at most kHdf5PieceFloats, so that the values need not be in memory.
  Status floats(const std::string& path, const Shape& shape, const FloatPieces& values);
  Status integer(const std::string& path, int value);
  Status string(const std::string& path, const std::string& value);

  /// For a file in memory: returns its bytes. Call once, last.
  Result<std::string> finish();
  /// For a file on disk. Call once, last.
  Status close();

 private:
  struct File;
  std::unique_ptr<File> file_;
};

/// Writes a file of any size to a temporary file and renames it (replace_file()).
Status replace_hdf5(const std::string& path, const std::function<Status(Hdf5Writer*)>& write);

}  // namespace cafetiere
