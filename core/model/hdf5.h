// SPDX-License-Identifier: Apache-2.0
// HDF5 files, in memory and on disk: reading and writing groups of float and integer datasets.
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

/// Whether `bytes` begin like an HDF5 file.
bool is_hdf5(std::string_view bytes);
/// The same of a file; false where it cannot be read.
bool is_hdf5_file(const std::string& path);

/// Values that are written at a time when they come in pieces.
inline constexpr size_t kHdf5PieceFloats = size_t{1} << 20;

/// Gives floats [begin, begin + out.size()) of an array, a piece at a time.
using FloatPieces = std::function<Status(size_t begin, std::span<float> out)>;

/// A dataset read as floats, whatever kind of number it holds.
struct Hdf5Floats {
  Shape shape;
  std::vector<float> values;
};

/// An HDF5 file that is read, from memory or disk. Paths are separated by '/'.
class Hdf5Reader {
 public:
  /// `bytes` must outlive the reader; `source` names the file in errors.
  static Result<Hdf5Reader> open(std::string_view bytes, std::string source);
  /// Reads from disk as needed: for files larger than memory. "File not found: F" when there is none.
  static Result<Hdf5Reader> open_file(const std::string& path);
  ~Hdf5Reader();
  Hdf5Reader(Hdf5Reader&&) noexcept;
  Hdf5Reader& operator=(Hdf5Reader&&) noexcept;

  /// Names of the groups and of the datasets in a group, in the order of the file's index; a group
  /// that does not exist has none.
  std::vector<std::string> groups(const std::string& path) const;
  std::vector<std::string> datasets(const std::string& path) const;

  /// Where a group or a dataset lies in the file: the same for all of its names. None when there is
  /// no such object.
  std::optional<uint64_t> address(const std::string& path) const;

  /// The shape of a dataset, whose values need not be numbers.
  Result<Shape> shape(const std::string& path) const;
  Result<Hdf5Floats> floats(const std::string& path) const;
  /// The shape of a dataset of numbers that are to be read: an error where the datasets so asked for
  /// hold more than the file does, since they share their bytes.
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

/// An HDF5 file that is written. Groups on the way to a path are created.
class Hdf5Writer {
 public:
  /// In memory or, given a path, on disk as it goes, of any size (replace_file()).
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

  /// Of a file in memory: its bytes. Call once, last.
  Result<std::string> finish();
  /// Of a file on disk. Call once, last.
  Status close();

 private:
  struct File;
  std::unique_ptr<File> file_;
};

/// Writes a file of any size aside and renames it (replace_file()).
Status replace_hdf5(const std::string& path, const std::function<Status(Hdf5Writer*)>& write);

}  // namespace cafetiere
