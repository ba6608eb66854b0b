// SPDX-License-Identifier: Apache-2.0
#include "core/model/weights.h"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <string_view>
#include <utility>

#include "core/model/file.h"
#include "core/model/upgrade.h"
#include "core/model/upgrade_weights.h"

namespace cafetiere {
namespace {

constexpr int kMaxGroupDepth = 64;  // depth of '/' in a layer's name

Result<caffe::NetParameter> parse_binary_weights(std::string_view bytes,
                                                 const std::string& source) {
  if (bytes.size() > static_cast<size_t>(kMaxFileBytes)) {
    return invalid_argument(fmt::format("{}: has {} bytes; a caffemodel has at most {}", source,
                                        bytes.size(), kMaxFileBytes));
  }
  if (bytes.empty()) return invalid_argument(source + ": is empty");
  caffe::NetParameter net;
  if (!net.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return invalid_argument(source + ": is not a caffemodel, or is cut off");
  }
  auto upgrade = upgrade_net(&net);
  if (!upgrade.ok()) return upgrade.status().with_context(source);
  for (caffe::LayerParameter& layer : *net.mutable_layer()) order_batch_norm(&layer);
  return net;
}

/// Reads the groups of an HDF5 file as layers without values. Links may lead to an object by
/// arbitrarily many paths, so each object is read once.
class Hdf5Layers {
 public:
  Hdf5Layers(const Hdf5Reader& file, caffe::NetParameter* net) : file_(file), net_(net) {}

  /// A group that contains datasets, or nothing, is a layer; other groups are parts of a name.
  Status read_group(const std::string& group, const std::string& name, int depth) {
    if (depth > kMaxGroupDepth) return invalid_argument(group + ": groups are nested too deep");
    CFT_TRY(visit(group));
    const std::vector<std::string> blobs = file_.datasets(group);
    const std::vector<std::string> inner = file_.groups(group);
    if (!name.empty() && (!blobs.empty() || inner.empty())) {
      caffe::LayerParameter* layer = net_->add_layer();
      layer->set_name(name);
      CFT_TRY(read_layer(group, blobs, layer));
    }
    for (const std::string& part : inner) {
      CFT_TRY(read_group(group + "/" + part, name.empty() ? part : name + "/" + part, depth + 1));
    }
    return {};
  }

 private:
  /// The datasets of a layer's group are named by blob index. One that belongs to another layer is
  /// skipped and becomes a blob without a shape.
  Status read_layer(const std::string& group, const std::vector<std::string>& datasets,
                    caffe::LayerParameter* layer) {
    for (const std::string& name : datasets) {
      int index = -1;
      const char* end = name.data() + name.size();
      const auto parsed = std::from_chars(name.data(), end, index);
      if (parsed.ec != std::errc() || parsed.ptr != end || index < 0 || index >= kMaxBlobs) {
        return invalid_argument(
            fmt::format("{}/{}: a dataset of a layer is called by a number from 0 to {}", group,
                        name, kMaxBlobs - 1));
      }
      const std::string path = group + "/" + name;
      CFT_TRY(visit(path));
      CFT_ASSIGN(const Shape shape, file_.claim(path));
      while (layer->blobs_size() <= index) layer->add_blobs();
      floats_to_blob({}, shape, layer->mutable_blobs(index));
    }
    return {};
  }

  Status visit(const std::string& path) {
    if (const auto at = file_.address(path); !at || visited_.insert(*at).second) return {};
    return invalid_argument(path + ": has a second name in the file; write the file again");
  }

  const Hdf5Reader& file_;
  caffe::NetParameter* net_;
  std::set<uint64_t> visited_;
};

Status write_layer(const caffe::LayerParameter& layer, Hdf5Weights* weights) {
  CFT_TRY(weights->layer(layer.name()));
  for (int i = 0; i < layer.blobs_size(); ++i) {
    const caffe::BlobProto& blob = layer.blobs(i);
    CFT_ASSIGN(const Shape shape, blob_shape(blob));
    std::vector<float> values(value_count(blob));
    CFT_TRY(
        blob_to_floats(blob, shape, values).with_context(fmt::format("{}/{}", layer.name(), i)));
    std::span<const float> diff(blob.diff().data(), static_cast<size_t>(blob.diff_size()));
    if (blob.diff_size() != shape.count()) diff = {};
    CFT_TRY(
        weights->blob(i, i < layer.param_size() ? layer.param(i).name() : "", shape, values, diff));
  }
  return {};
}

Status write_layers(const caffe::NetParameter& net, Hdf5Writer* file) {
  CFT_ASSIGN(Hdf5Weights weights, Hdf5Weights::begin(file));
  for (const caffe::LayerParameter& layer : net.layer()) CFT_TRY(write_layer(layer, &weights));
  return {};
}

}  // namespace

ModelFormat format_of_path(const std::string& path) {
  return path.ends_with(".h5") ? ModelFormat::kHdf5 : ModelFormat::kBinary;
}

Result<caffe::NetParameter> parse_weights(std::span<const std::byte> bytes) {
  const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const std::string source = "weights";
  if (!is_hdf5(text)) return parse_binary_weights(text, source);
  CFT_ASSIGN(Hdf5Reader file, Hdf5Reader::open(text, source));
  CFT_ASSIGN(StoredWeights weights, StoredWeights::open(std::move(file), source));
  return std::move(weights).whole();
}

Result<caffe::NetParameter> read_weights(const std::string& path) {
  CFT_ASSIGN(StoredWeights weights, StoredWeights::open(path));
  return std::move(weights).whole();
}

Result<StoredWeights> StoredWeights::open(const std::string& path) {
  if (is_hdf5_file(path)) {
    CFT_ASSIGN(Hdf5Reader file, Hdf5Reader::open_file(path));
    return open(std::move(file), path);
  }
  CFT_ASSIGN(const std::string bytes, read_file(path));
  CFT_ASSIGN(caffe::NetParameter net, parse_binary_weights(bytes, path));
  return StoredWeights(std::move(net));
}

Result<StoredWeights> StoredWeights::open(Hdf5Reader file, const std::string& source) {
  StoredWeights weights{caffe::NetParameter()};
  CFT_TRY(Hdf5Layers(file, &weights.net_).read_group("/data", "", 0).with_context(source));
  for (caffe::LayerParameter& layer : *weights.net_.mutable_layer()) {
    weights.places_.push_back(order_batch_norm_shapes(&layer));
  }
  weights.file_.emplace(std::move(file));
  return weights;
}

std::string StoredWeights::dataset_of(int layer, int blob) const {
  const std::vector<int>& places = places_[size_t(layer)];
  return fmt::format("/data/{}/{}", net_.layer(layer).name(),
                     places.empty() ? blob : places[size_t(blob)]);
}

Status StoredWeights::read(int layer, int blob, const Shape& expected, std::span<float> out) const {
  const caffe::BlobProto& stored = net_.layer(layer).blobs(blob);
  if (!file_) return blob_to_floats(stored, expected, out);
  CFT_TRY(check_shape(stored, expected));
  return file_->read(dataset_of(layer, blob), 0, out);
}

Result<caffe::NetParameter> StoredWeights::whole() && {
  if (!file_) return std::move(net_);
  for (int l = 0; l < net_.layer_size(); ++l) {
    caffe::LayerParameter& layer = *net_.mutable_layer(l);
    for (int i = 0; i < layer.blobs_size(); ++i) {
      caffe::BlobProto& blob = *layer.mutable_blobs(i);
      if (!blob.has_shape()) continue;  // belongs to another layer
      CFT_ASSIGN(const Shape shape, blob_shape(blob));
      blob.mutable_data()->Resize(int(shape.count()), 0.F);
      CFT_TRY(file_->read(dataset_of(l, i), 0,
                          {blob.mutable_data()->mutable_data(), size_t(shape.count())}));
    }
  }
  return std::move(net_);
}

Result<Hdf5Weights> Hdf5Weights::begin(Hdf5Writer* file) {
  CFT_TRY(file->group("/data"));
  return Hdf5Weights(file);
}

Status Hdf5Weights::layer(const std::string& name) {
  layer_ = name;
  return file_->group("/data/" + name);
}

Status Hdf5Weights::blob(int index, const std::string& shared, const Shape& shape,
                         std::span<const float> values, std::span<const float> diff) {
  const std::string path = fmt::format("{}/{}", layer_, index);
  if (shared.empty() || written_.insert(shared).second) {
    CFT_TRY(file_->floats("/data/" + path, shape, values));
  }
  return diff.empty() ? Status() : file_->floats("/diff/" + path, shape, diff);
}

Result<std::string> serialize_weights(const caffe::NetParameter& net, ModelFormat format) {
  if (format == ModelFormat::kHdf5) {
    Hdf5Writer file;
    CFT_TRY(write_layers(net, &file));
    return file.finish();
  }
  const size_t size = net.ByteSizeLong();
  std::string bytes;
  if (size > static_cast<size_t>(kMaxFileBytes) || !net.SerializePartialToString(&bytes)) {
    return invalid_argument(fmt::format(
        "the weights take {} bytes; a caffemodel has at most {}, an HDF5 file holds more", size,
        kMaxFileBytes));
  }
  return bytes;
}

Status write_weights(const caffe::NetParameter& net, const std::string& path, ModelFormat format) {
  if (format == ModelFormat::kHdf5) {
    return replace_hdf5(path, [&](Hdf5Writer* file) { return write_layers(net, file); });
  }
  CFT_ASSIGN(const std::string bytes, serialize_weights(net, format));
  return write_file(path, bytes);
}

}  // namespace cafetiere
