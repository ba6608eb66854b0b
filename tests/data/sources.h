// SPDX-License-Identifier: Apache-2.0
// Opens the sources of layers given as text, for tests.
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/data/source.h"
#include "core/layers/registry.h"

namespace cafetiere {

inline constexpr uint64_t kSeed = 4;

inline caffe::LayerParameter parse_layer(const std::string& text) {
  caffe::LayerParameter layer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("name: 'L' " + text, &layer)) << text;
  return layer;
}

/// The source of a layer, of which `layer` gives all but the name "L".
inline Result<std::unique_ptr<Source>> try_open(const std::string& layer, bool train = false,
                                                int shards = 1, uint64_t seed = kSeed) {
  const caffe::LayerParameter param = parse_layer(layer);
  CFT_ASSIGN(const LayerType* type, find_layer_type(layer_types(), param.type()));
  return type->open(param, {train, shards, seed, {}});
}

inline std::unique_ptr<Source> open_layer(const std::string& layer, bool train = false,
                                          int shards = 1, uint64_t seed = kSeed) {
  auto source = try_open(layer, train, shards, seed);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return source.ok() ? *std::move(source) : nullptr;
}

/// The floats of each top.
using Tops = std::vector<std::vector<float>>;

/// Makes one batch, with memory for a full one.
inline Status fill(Source& source, int shard, int64_t sub_step, Tops* tops) {
  std::vector<float*> pointers;
  tops->clear();
  for (const Shape& shape : source.top_shapes()) {
    tops->emplace_back(static_cast<size_t>(shape.count()));
  }
  for (auto& top : *tops) pointers.push_back(top.data());
  return source.fill(shard, sub_step, pointers);
}

/// The second top of a batch, or the only one.
inline std::vector<float> labels(Source& source, int64_t sub_step, int shard = 0) {
  Tops tops;
  const Status status = fill(source, shard, sub_step, &tops);
  EXPECT_TRUE(status.ok()) << status.message();
  return tops.back();
}

/// What opening or the first batch says.
inline std::string error_of(const std::string& layer) {
  auto source = try_open(layer);
  if (!source.ok()) return source.status().message();
  Tops tops;
  return fill(**source, 0, 0, &tops).message();
}

}  // namespace cafetiere
