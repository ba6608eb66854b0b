// SPDX-License-Identifier: Apache-2.0
// Weights: reading and writing .caffemodel files and their HDF5 form.
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

/// The file formats of weights and solver states.
enum class ModelFormat { kBinary, kHdf5 };

/// kHdf5 for a path that ends in ".h5", else kBinary.
ModelFormat format_of_path(const std::string& path);

/// Weights from bytes of either form, which is detected from the content; layers are in the current
/// form, to be matched by name. Layers from an HDF5 file are in the order of its index.
Result<caffe::NetParameter> parse_weights(std::span<const std::byte> bytes);
/// Weights from a file; errors name it, "File not found: F" if it does not exist.
Result<caffe::NetParameter> read_weights(const std::string& path);

/// Weights whose blobs are read one at a time, so that the whole file need not fit into memory:
/// from an HDF5 file on disk, or from a message.
class StoredWeights {
 public:
  StoredWeights(caffe::NetParameter net) : net_(std::move(net)) {}  // NOLINT: implicit by design
  /// Opens the weights in a file; errors as in read_weights().
  static Result<StoredWeights> open(const std::string& path);
  /// The same for an open HDF5 file; `source` names it in errors.
  static Result<StoredWeights> open(Hdf5Reader file, const std::string& source);

  /// The layers. Blobs still on disk have only a shape.
  const caffe::NetParameter& net() const { return net_; }
  /// Copies a blob of layer `layer` to `out`; an error if its shape is not `expected`.
  Status read(int layer, int blob, const Shape& expected, std::span<float> out) const;
  /// Reads everything into memory.
  Result<caffe::NetParameter> whole() &&;

 private:
  std::string dataset_of(int layer, int blob) const;

  caffe::NetParameter net_;
  std::optional<Hdf5Reader> file_;
  std::vector<std::vector<int>> places_;  // HDF5 only: the blobs of each layer, unless in order
};

/// The bytes of `net` (structure and weights; in HDF5 the weights only). A parameter shared by name
/// is stored once in HDF5, with the first layer.
Result<std::string> serialize_weights(const caffe::NetParameter& net, ModelFormat format);
/// Writes `net` to a temporary file that is renamed; HDF5 is written directly to disk, of any size.
Status write_weights(const caffe::NetParameter& net, const std::string& path, ModelFormat format);

/// Writes weights to an HDF5 file, layer by layer, in Caffe's layout.
class Hdf5Weights {
 public:
  /// `file` must outlive this object and contain no weights yet.
  static Result<Hdf5Weights> begin(Hdf5Writer* file);
  Status layer(const std::string& name);
  /// Writes blob `index` of the last layer. `shared`: the name by which layers share it, or ""; a
  /// shared blob is stored once, with the first layer. `diff` may be empty.
  Status blob(int index, const std::string& shared, const Shape& shape,
              std::span<const float> values, std::span<const float> diff);

 private:
  explicit Hdf5Weights(Hdf5Writer* file) : file_(file) {}
  Hdf5Writer* file_;
  std::string layer_;
  std::set<std::string> written_;  // shared names
};

}  // namespace cafetiere
