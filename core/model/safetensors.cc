// SPDX-License-Identifier: Apache-2.0
#include "core/model/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/model/blob.h"
#include "core/model/file.h"

namespace cafetiere {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeader = uint64_t{16} << 20;  // about 100,000 tensors; memory use is a
                                                     // multiple of it
constexpr int kMaxHeaderDepth = 8;                   // of the header; the format needs 3
constexpr const char* kMetadata = "__metadata__";

/// The parts of a tensor's name: the layer, and the blob's index after the last dot.
struct BlobName {
  std::string layer;
  int index = -1;
};

Result<BlobName> parse_name(const std::string& name) {
  const size_t dot = name.rfind('.');
  BlobName parsed;
  if (dot != std::string::npos && dot > 0) {
    const char *begin = name.data() + dot + 1, *end = name.data() + name.size();
    parsed.layer = name.substr(0, dot);
    const auto [stop, error] = std::from_chars(begin, end, parsed.index);
    if (error == std::errc() && stop == end && parsed.index >= 0 && parsed.index < kMaxBlobs) {
      return parsed;
    }
  }
  return invalid_argument(
      fmt::format("tensor '{}' is not called LAYER.INDEX, such as conv1.0, with an index below {}",
                  name, kMaxBlobs));
}

/// A list of non-negative numbers.
Result<std::vector<int64_t>> numbers(const Json& entry, const char* key) {
  const auto list = entry.find(key);
  if (list == entry.end() || !list->is_array()) {
    return invalid_argument(std::string("it has no list of ") + key);
  }
  std::vector<int64_t> values;
  for (const Json& value : *list) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t(INT64_MAX)) {
      return invalid_argument(std::string(key) + " must be whole numbers from 0 on");
    }
    values.push_back(value.get<int64_t>());
  }
  return values;
}

template <class T>
std::vector<float> to_floats(std::string_view bytes) {
  std::vector<float> values;
  values.reserve(bytes.size() / sizeof(T));
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    values.push_back(float(value));
  }
  return values;
}

Status read_tensor(const Json& entry, std::string_view data, caffe::BlobProto* blob) {
  if (!entry.is_object()) return invalid_argument("its entry is no object");
  const auto type = entry.find("dtype");
  const bool single = type != entry.end() && *type == "F32";
  if (!single && (type == entry.end() || *type != "F64")) {
    return invalid_argument("its dtype must be F32 or F64");
  }
  CFT_ASSIGN(std::vector<int64_t> dims, numbers(entry, "shape"));
  CFT_ASSIGN(const std::vector<int64_t> place, numbers(entry, "data_offsets"));
  const Shape shape(std::move(dims));
  CFT_TRY(check_blob_shape(shape));
  const int64_t size = shape.count() * (single ? 4 : 8);
  if (place.size() != 2 || place[0] > place[1] || place[1] > int64_t(data.size()) ||
      place[1] - place[0] != size) {
    return invalid_argument(fmt::format(
        "its data_offsets must be two places in {} bytes of values, {} apart", data.size(), size));
  }
  const std::string_view bytes = data.substr(size_t(place[0]), size_t(size));
  floats_to_blob(single ? to_floats<float>(bytes) : to_floats<double>(bytes), shape, blob);
  return {};
}

}  // namespace

bool is_safetensors_path(const std::string& path) { return path.ends_with(".safetensors"); }

Result<caffe::NetParameter> parse_safetensors(std::string_view bytes) {
  uint64_t length = 0;
  if (bytes.size() < sizeof(length)) return invalid_argument("is too short for safetensors");
  std::memcpy(&length, bytes.data(), sizeof(length));
  const std::string_view rest = bytes.substr(sizeof(length));
  if (length > rest.size() || length > kMaxHeader) {
    return invalid_argument(
        fmt::format("says that its header has {} bytes; {} follow, {} are allowed", length,
                    rest.size(), kMaxHeader));
  }
  // Nesting is limited during parsing, so that a hostile header uses little stack and memory.
  const auto shallow = [](int depth, Json::parse_event_t, Json&) {
    return depth <= kMaxHeaderDepth;
  };
  const std::string_view text = rest.substr(0, length);
  const Json header = Json::parse(text.begin(), text.end(), shallow, false);
  if (!header.is_object()) return invalid_argument("has a header that is not a JSON object");
  const std::string_view data = rest.substr(length);
  caffe::NetParameter net;
  std::map<std::string, caffe::LayerParameter*> layers;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) {
      if (entry.is_object() && entry.contains("name") && entry["name"].is_string()) {
        net.set_name(entry["name"].get<std::string>());
      }
      continue;
    }
    CFT_ASSIGN(const BlobName blob, parse_name(name));
    caffe::LayerParameter*& layer = layers[blob.layer];
    if (!layer) {
      layer = net.add_layer();
      layer->set_name(blob.layer);
    }
    while (layer->blobs_size() <= blob.index) layer->add_blobs();
    CFT_TRY(read_tensor(entry, data, layer->mutable_blobs(blob.index))
                .with_context("tensor '" + name + "'"));
  }
  return net;
}

Result<std::string> serialize_safetensors(const caffe::NetParameter& net) {
  Json header = Json::object();
  if (net.has_name()) header[kMetadata] = {{"name", net.name()}};
  std::string data;
  for (const caffe::LayerParameter& layer : net.layer()) {
    for (int i = 0; i < layer.blobs_size(); ++i) {
      const std::string name = fmt::format("{}.{}", layer.name(), i);
      CFT_ASSIGN(const Shape shape, blob_shape(layer.blobs(i)));
      std::vector<float> values(value_count(layer.blobs(i)));
      CFT_TRY(blob_to_floats(layer.blobs(i), shape, values).with_context(name));
      if (header.contains(name)) return invalid_argument("two layers are called " + layer.name());
      const size_t begin = data.size(), size = values.size() * sizeof(float);
      header[name] = {
          {"dtype", "F32"}, {"shape", shape.dims()}, {"data_offsets", {begin, begin + size}}};
      data.append(reinterpret_cast<const char*>(values.data()), size);
    }
  }
  // Spaces pad the header so that the values are aligned to 8 bytes.
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  return bytes + text + data;
}

}  // namespace cafetiere
