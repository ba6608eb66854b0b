// SPDX-License-Identifier: Apache-2.0
// Weights of a net: in, out and shared with another net.
#include "core/graph/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>

#include "core/model/file.h"
#include "core/model/weights.h"
#include "tests/graph/toy.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kData = toy("data", "Source", "top: 'x' top: 'label'");
const std::string kEnd = toy("loss", "Loss", "bottom: 'b' bottom: 'label' top: 'loss'");
const std::string kNet = kData + toy_weights("a", "x", 3) + toy_weights("b", "a", 4) + kEnd;
// The two layers share their weight, not their bias.
const std::string kShared = kData + toy_weights("a", "x", 3, "param { name: 'w' }") +
                            toy_weights("b", "a", 3, "param { name: 'w' }") + kEnd;

Graph graph_of(const std::string& text) {
  auto graph = build_toy(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

std::vector<float> numbered(const Graph& graph) {
  std::vector<float> arena(size_t(graph.arena_size()));
  std::iota(arena.begin(), arena.end(), 1.F);
  return arena;
}

/// The parameters alone, without the gaps between them.
std::vector<float> params_of(const Graph& graph, const std::vector<float>& arena) {
  std::vector<float> values;
  for (const Param& p : graph.params()) {
    values.insert(values.end(), arena.begin() + p.offset,
                  arena.begin() + p.offset + p.shape.count());
  }
  return values;
}

std::string load_error(const std::string& from, const std::string& to) {
  const Graph source = graph_of(from), target = graph_of(to);
  std::vector<float> arena(size_t(target.arena_size()));
  return load_weights(target, to_weights(source, numbered(source)), arena, nullptr).message();
}

TEST(Arena, WeightsGoThroughBothFormats) {
  for (const std::string& text : {kNet, kShared}) {
    const Graph graph = graph_of(text);
    const std::vector<float> arena = numbered(graph);
    for (const ModelFormat format : {ModelFormat::kBinary, ModelFormat::kHdf5}) {
      const auto bytes = serialize_weights(to_weights(graph, arena), format);
      ASSERT_TRUE(bytes.ok()) << bytes.status().message();
      const auto weights = parse_weights(std::as_bytes(std::span(*bytes)));
      ASSERT_TRUE(weights.ok()) << weights.status().message();
      std::vector<float> loaded(arena.size());
      const Status status = load_weights(graph, *weights, loaded, nullptr);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(params_of(graph, loaded), params_of(graph, arena));
    }
  }
}

// By share_mode PERMISSIVE; Caffe's files have each layer's own shape, too.
TEST(Arena, ASharedBlobIsStoredInTheShapeOfEachLayer) {
  const std::string w = "param { name: 'w' share_mode: PERMISSIVE } ";
  const Graph graph = graph_of(
      kData + toy_weights("a", "x", 4, w) +
      toy("b", "Weights",
          "bottom: 'a' top: 'b' " + w + "inner_product_param { num_output: 4 transpose: true }") +
      kEnd);
  const std::vector<float> arena = numbered(graph);
  const caffe::NetParameter stored = to_weights(graph, arena);
  EXPECT_THAT(stored.layer(1).blobs(0).shape().dim(), ElementsAre(4, 3));
  EXPECT_THAT(stored.layer(2).blobs(0).shape().dim(), ElementsAre(3, 4));
  std::vector<float> loaded(arena.size());
  const Status status = load_weights(graph, stored, loaded, nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(params_of(graph, loaded), params_of(graph, arena));
}

// The same file, whether it is written from the arena or from the net that holds a copy of it.
TEST(Arena, Hdf5IsWrittenStraightFromTheArena) {
  const std::string one = testing::TempDir() + "cafetiere_arena_test.1.h5";
  const std::string two = testing::TempDir() + "cafetiere_arena_test.2.h5";
  for (const std::string& text : {kNet, kShared}) {
    const Graph graph = graph_of(text);
    const std::vector<float> arena = numbered(graph), diffs(arena.size(), 0.5F);
    ASSERT_TRUE(write_hdf5_weights(graph, arena, diffs, one).ok());
    ASSERT_TRUE(write_weights(to_weights(graph, arena, diffs), two, ModelFormat::kHdf5).ok());
    const auto first = read_file(one), second = read_file(two);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_TRUE(*first == *second);
    std::remove(one.c_str());
    std::remove(two.c_str());
  }
}

TEST(Arena, LayersAreMatchedByName) {
  const Graph source = graph_of(kNet);
  const Graph target = graph_of(kData + toy_weights("b", "x", 4) + toy_weights("new", "b", 2));
  std::vector<float> arena(size_t(target.arena_size()), -1.F);
  std::vector<std::string> ignored;
  ASSERT_TRUE(load_weights(target, to_weights(source, numbered(source)), arena, &ignored).ok());
  EXPECT_THAT(ignored, ElementsAre("a", "loss"));
  EXPECT_EQ(arena[size_t(target.params()[0].offset)],
            numbered(source)[size_t(source.params()[2].offset)]);
  EXPECT_EQ(arena[size_t(target.params()[2].offset)], -1) << "a layer without a source";
}

TEST(Arena, ATrainingBeginsWithWeightsOfAtLeastOneOfItsLayers) {
  const Graph source = graph_of(kNet);
  const StoredWeights weights(to_weights(source, numbered(source)));
  const auto begin = [&](const std::string& net) {
    const Graph target = graph_of(net);
    std::vector<float> arena(size_t(target.arena_size()));
    return begin_with_weights(target, weights, arena, {});
  };
  EXPECT_TRUE(begin(kData + toy_weights("b", "x", 4) + toy_weights("new", "b", 2)).ok());
  EXPECT_TRUE(begin(kData + toy("map", "Map", "bottom: 'x' top: 'map'")).ok());
  EXPECT_THAT(begin(kData + toy_weights("new", "x", 4)).message(),
              HasSubstr("none of the layers whose weights are given (a, b)"));
}

// Which of the layers that share a parameter owns it is up to the net's order.
TEST(Arena, WeightsOfOneOfTheLayersThatShareThemAreComplete) {
  const std::string shared = "param { name: 'w' } param { name: 'v' }";
  const Graph source = graph_of(kData + toy_weights("b", "x", 3, shared));
  const Graph both =
      graph_of(kData + toy_weights("a", "x", 3, shared) + toy_weights("b", "a", 3, shared));
  const caffe::NetParameter weights = to_weights(source, numbered(source));
  std::vector<float> arena(size_t(both.arena_size()));
  EXPECT_TRUE(begin_with_weights(both, StoredWeights(weights), arena, {}).ok());
  EXPECT_TRUE(check_complete(both, weights, both.outputs()).ok());
  const Graph more = graph_of(kData + toy_weights("b", "x", 3) + toy_weights("a", "b", 4));
  EXPECT_THAT(check_complete(more, weights, more.outputs()).message(),
              HasSubstr("there are no weights for layer 'a'"));
  const int enough[] = {more.find_blob("b")};
  EXPECT_TRUE(check_complete(more, weights, enough).ok());
}

TEST(Arena, WhatDoesNotFitIsNamed) {
  const std::string wide = kData + toy_weights("a", "x", 5) + toy_weights("b", "a", 4) + kEnd;
  EXPECT_THAT(load_error(kNet, wide),
              AllOf(HasSubstr("Cannot copy param 0 weights from layer 'a'"), HasSubstr("3 3 (9)"),
                    HasSubstr("5 3 (15)"), HasSubstr("rename the layer")));
  const std::string none = kData + toy("a", "Map", "bottom: 'x' top: 'a'");
  EXPECT_THAT(load_error(kNet, none),
              HasSubstr("Incompatible number of blobs for layer a: the weights have 2, the net 0"));
  EXPECT_THAT(load_error(none, kNet), HasSubstr("the weights have 0, the net 2"));
}

TEST(Arena, DifferencesAreStoredBesideTheValues) {
  const Graph graph = graph_of(kNet);
  const std::vector<float> arena = numbered(graph);
  const std::vector<float> moved(arena.size(), 0.25F);
  const caffe::NetParameter net = to_weights(graph, arena, moved);
  EXPECT_THAT(net.layer(1).blobs(1).diff(), ElementsAre(0.25F, 0.25F, 0.25F));
  EXPECT_EQ(to_weights(graph, arena).layer(1).blobs(1).diff_size(), 0);
}

TEST(Arena, ATestNetUsesTheTrainingNetsParametersAndItsOwnElsewhere) {
  const Graph train = graph_of(kNet);
  const Graph test = graph_of(kData + toy_weights("b", "x", 4) + toy_weights("extra", "b", 2));
  std::vector<float> arena = numbered(train), own(size_t(test.arena_size()));
  const auto pointers = shared_params(test, train, arena.data(), own.data());
  ASSERT_TRUE(pointers.ok()) << pointers.status().message();
  EXPECT_THAT(
      *pointers,
      ElementsAre(arena.data() + train.params()[2].offset, arena.data() + train.params()[3].offset,
                  own.data() + test.params()[2].offset, own.data() + test.params()[3].offset));
  const Graph wide = graph_of(kData + toy_weights("b", "x", 5));
  EXPECT_THAT(shared_params(wide, train, arena.data(), own.data()).status().message(),
              AllOf(HasSubstr("layer 'b', blob 0"), HasSubstr("5 3 (15)"), HasSubstr("4 3 (12)")));
}

}  // namespace
}  // namespace cafetiere
