// SPDX-License-Identifier: Apache-2.0
// Layer types of a few lines each, for tests of what the graph does with any layer.
#pragma once

#include <gtest/gtest.h>

#include "core/graph/graph.h"

namespace cafetiere {

/// A 2 x 3 input.
struct ToySource : Layer {
  using Layer::Layer;
  Status shape(LayerShapes& s) const override {
    for (Shape& top : s.tops) top = {2, 3};
    return {};
  }
  Status forward(LoweringContext&) const override { return {}; }
};

/// The first bottom's shape in every top.
struct ToyMap : Layer {
  using Layer::Layer;
  Status shape(LayerShapes& s) const override {
    for (Shape& top : s.tops) top = s.bottoms[0];
    return {};
  }
  Status forward(LoweringContext&) const override { return {}; }
};

/// A weight of num_output x 3, or the reverse, and a bias of num_output, as an inner product has.
struct ToyWeights : ToyMap {
  using ToyMap::ToyMap;
  Status shape(LayerShapes& s) const override {
    const int64_t outputs = param().inner_product_param().num_output();
    Shape weight{outputs, 3};
    if (param().inner_product_param().transpose()) weight = {3, outputs};
    s.params = {{.shape = weight, .filler = {}}, {.shape = {outputs}, .filler = {}}};
    return ToyMap::shape(s);
  }
};

struct ToyLoss : Layer {
  using Layer::Layer;
  Status shape(LayerShapes& s) const override {
    s.tops.assign(s.tops.size(), Shape{});
    return {};
  }
  Status forward(LoweringContext&) const override { return {}; }
};

inline LayerTypes toy_types() {
  static const LayerType source{.name = "Source",
                                .min_bottoms = 0,
                                .max_bottoms = 0,
                                .max_tops = -1,
                                .create = create_layer<ToySource>,
                                .source = true};
  static const LayerType map{
      .name = "Map", .max_bottoms = -1, .max_tops = -1, .create = create_layer<ToyMap>};
  static const LayerType split{
      .name = "Split", .max_tops = -1, .create = create_layer<ToyMap>, .identity = true};
  static const LayerType weights{.name = "Weights", .create = create_layer<ToyWeights>};
  static const LayerType loss{.name = "Loss",
                              .min_bottoms = 2,
                              .max_bottoms = 2,
                              .create = create_layer<ToyLoss>,
                              .loss = true,
                              .no_label = true};
  static const LayerType* const types[] = {&source, &map, &split, &weights, &loss};
  return types;
}

inline Result<Graph> build_toy(const std::string& text, caffe::Phase phase = caffe::TRAIN) {
  auto net = parse_net(text, "net");
  EXPECT_TRUE(net.ok()) << net.status().message();
  caffe::NetState state;
  state.set_phase(phase);
  return Graph::build(*net, state, {.types = toy_types(), .fed = {}});
}

/// A layer's text, on a line of its own.
inline std::string toy(const std::string& name, const std::string& type, const std::string& rest) {
  return "layer { name: '" + name + "' type: '" + type + "' " + rest + " }\n";
}

inline std::string toy_weights(const std::string& name, const std::string& bottom, int outputs,
                               const std::string& rest = "") {
  return toy(name, "Weights",
             "bottom: '" + bottom + "' top: '" + name +
                 "' inner_product_param { num_output: " + std::to_string(outputs) + " } " + rest);
}

}  // namespace cafetiere
