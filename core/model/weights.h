// SPDX-License-Identifier: Apache-2.0
// Weights: .caffemodel files and their HDF5 form, both ways.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "core/base/status.h"
#include "core/model/blob.h"
#include "core/model/hdf5.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The two forms of weights and solver states.
enum class ModelFormat { kBinary, kHdf5 };

/// kHdf5 for a path that ends in ".h5", else kBinary.
ModelFormat format_of_path(const std::string& path);

/// Weights from bytes of either form, told apart by content; layers in today's form, matched by
/// name by whoever loads them. Names in an HDF5 file come in the order of its index.
Result<caffe::NetParameter> parse_weights(std::span<const std::byte> bytes);
/// Weights from a file; errors name it, "File not found: F" when there is none.
Result<caffe::NetParameter> read_weights(const std::string& path);

/// Weights whose blobs are read one at a time, so that a file need not fit memory beside them: from an
/// HDF5 file on disk, or out of a message.
class StoredWeights {
 public:
  StoredWeights(caffe::NetParameter net) : net_(std::move(net)) {}  // NOLINT: implicit by design
  /// Weights in a file; errors as those of read_weights().
  static Result<StoredWeights> open(const std::string& path);
  /// The same in an HDF5 file that is open; `source` names it in errors.
  static Result<StoredWeights> open(Hdf5Reader file, const std::string& source);

  /// The layers. Blobs that are still on disk have their shape alone.
  const caffe::NetParameter& net() const { return net_; }
  /// Copies a blob of layer `layer` to `out`; an error where its shape is not `expected`.
  Status read(int layer, int blob, const Shape& expected, std::span<float> out) const;
  /// All of it, into memory.
  Result<caffe::NetParameter> whole() &&;

 private:
  std::string dataset_of(int layer, int blob) const;

  caffe::NetParameter net_;
  std::optional<Hdf5Reader> file_;
  std::vector<std::vector<int>>
      places_;  // of an HDF5 file: of each layer's blobs, if not in their order
};

/// The bytes of `net` (structure and weights, or in HDF5 the weights only). Where layers share a
/// parameter by name, HDF5 holds it once, with the first of them.
Result<std::string> serialize_weights(const caffe::NetParameter& net, ModelFormat format);
/// Writes `net` to a file, aside and renamed; HDF5 as it goes, of any size.
Status write_weights(const caffe::NetParameter& net, const std::string& path, ModelFormat format);

/// Writes weights into an HDF5 file, a layer after another, as Caffe lays them out.
class Hdf5Weights {
 public:
  /// `file` outlives this object and holds no weights yet.
  static Result<Hdf5Weights> begin(Hdf5Writer* file);
  Status layer(const std::string& name);
  /// Blob `index` of the last layer. `shared`: the name by which layers share it, or ""; it is held
  /// once, with the first of them. `diff` may be empty.
  Status blob(int index, const std::string& shared, const Shape& shape,
              std::span<const float> values, std::span<const float> diff);

 private:
  explicit Hdf5Weights(Hdf5Writer* file) : file_(file) {}
  Hdf5Writer* file_;
  std::string layer_;
  std::set<std::string> written_;  // of the shared ones
};

}  // namespace cafetiere
