// SPDX-License-Identifier: Apache-2.0
// What the graph does with any layer: gradients, shared parameters, loss weights, its log.
#include "core/graph/graph.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/net_log.h"
#include "tests/graph/toy.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Names = std::vector<std::string>;

const std::string kGraphData = toy("data", "Source", "top: 'x' top: 'label'");
const std::string kLoss = toy("loss", "Loss", "bottom: 'b' bottom: 'label' top: 'loss'");

/// The layers that need a gradient; "layer<bottom" for each bottom that one goes down to.
Names gradients(const std::string& text) {
  auto graph = build_toy(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  Names names;
  if (!graph.ok()) return names;
  for (const Node& node : graph->nodes()) {
    if (!node.needs_backward) continue;
    names.push_back(node.param.name());
    for (size_t i = 0; i < node.bottoms.size(); ++i) {
      if (node.propagate_down[i]) {
        names.push_back(node.param.name() + "<" + node.param.bottom(int(i)));
      }
    }
  }
  return names;
}

std::string refusal_of(const std::string& text) { return build_toy(text).status().message(); }

TEST(Graph, GradientsGoFromALossToWhatLearns) {
  EXPECT_THAT(gradients(kGraphData + toy_weights("a", "x", 3) + toy_weights("b", "a", 3) + kLoss),
              ElementsAre("a", "b", "b<a", "loss", "loss<b"));
}

TEST(Graph, LayersWithoutEndAreRefused) {
  std::string text = kGraphData;
  for (int i = 0; i < 70000; ++i) text += toy("l", "Source", fmt::format("top: '{}'", i));
  EXPECT_THAT(refusal_of(text), HasSubstr("has 70001 layers; at most 65536 are supported"));
}

TEST(Graph, FrozenLayersAndWhatLeadsToNoLossNeedNone) {
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 }";
  EXPECT_THAT(
      gradients(kGraphData + toy_weights("a", "x", 3, frozen) + toy_weights("b", "a", 3) + kLoss),
      ElementsAre("b", "loss", "loss<b"));
  EXPECT_THAT(
      gradients(kGraphData + toy_weights("b", "x", 3) + toy_weights("side", "x", 3) + kLoss),
      ElementsAre("b", "loss", "loss<b"));
}

TEST(Graph, PropagateDownCutsAndForces) {
  EXPECT_THAT(gradients(kGraphData + toy_weights("a", "x", 3) +
                        toy_weights("b", "a", 3, "propagate_down: false") + kLoss),
              ElementsAre("b", "loss", "loss<b"))
      << "nothing below the cut is worth a gradient";
  EXPECT_THAT(gradients(kGraphData + toy_weights("b", "x", 3, "propagate_down: true") + kLoss),
              ElementsAre("b", "b<x", "loss", "loss<b"));
}

TEST(Graph, ForceBackwardReachesEverythingButLabels) {
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 } propagate_down: false";
  EXPECT_THAT(gradients("force_backward: true\n" + kGraphData + toy_weights("b", "x", 3, frozen) +
                        kLoss + toy("side", "Map", "bottom: 'x' top: 'side'")),
              ElementsAre("x_data_0_split", "x_data_0_split<x", "b", "b<x_data_0_split_0", "loss",
                          "loss<b", "side", "side<x_data_0_split_1"));
}

// The label goes through a split, which runs backward for the other reader alone.
TEST(Graph, ForceBackwardLeavesALabelWithTwoReadersALabel) {
  EXPECT_THAT(gradients("force_backward: true\n" + kGraphData + toy_weights("b", "x", 3) + kLoss +
                        toy("side", "Map", "bottom: 'label' top: 'side'")),
              AllOf(Contains("loss<b"), Not(Contains(HasSubstr("loss<label")))));
}

TEST(Graph, ALabelThatLearnsIsRefused) {
  EXPECT_THAT(
      refusal_of(kGraphData + toy_weights("b", "x", 3) + toy_weights("l", "label", 3) +
                 toy("loss", "Loss", "bottom: 'b' bottom: 'l' top: 'loss'")),
      AllOf(HasSubstr("net:4: layer 'loss'"), HasSubstr("no gradient for its bottom 1 ('l')"),
            HasSubstr("propagate_down: false")));
}

TEST(Graph, AnyTopMayBeWeightedAsALoss) {
  auto graph = build_toy(kGraphData + toy_weights("a", "x", 3, "loss_weight: 0.5") +
                         toy("end", "Map", "bottom: 'label' top: 'end'"));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_TRUE(graph->nodes()[1].needs_backward);
  EXPECT_THAT(refusal_of(kGraphData + toy("a", "Map",
                                          "bottom: 'x' bottom: 'label' top: 'a' "
                                          "loss_weight: 1 loss_weight: 2")),
              HasSubstr("loss_weight is given 2 time(s) for 1 top(s)"));
}

TEST(Graph, SharedParametersFitByShapeOrByCount) {
  const auto two = [&](int first, int second, const std::string& mode) {
    const std::string shared = "param { name: 'w' ";
    return kGraphData + toy_weights("a", "x", first, shared + "}") +
           toy_weights("b", "a", second, shared + mode + "}") + kLoss;
  };
  auto graph = build_toy(two(3, 3, ""));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->params().size(), 3U);
  EXPECT_EQ(graph->nodes()[1].params[0], graph->nodes()[2].params[0]);
  EXPECT_THAT(
      refusal_of(two(3, 4, "")),
      AllOf(HasSubstr("net:3: layer 'b'"), HasSubstr("Cannot share param 'w' owned by layer"),
            HasSubstr("shape mismatch"), HasSubstr("3 3 (9)"), HasSubstr("4 3 (12)")));
  EXPECT_THAT(refusal_of(two(3, 4, "share_mode: PERMISSIVE")), HasSubstr("count mismatch"));
}

// Caffe has it among the blobs, not among the outputs.
TEST(Graph, ALossWithoutATopHasAnAnonymousOne) {
  const std::string loss = toy("loss", "Loss", "bottom: 'b' bottom: 'label'");
  auto graph = build_toy(kGraphData + toy_weights("a", "x", 3) + toy_weights("b", "x", 3) + loss);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  ASSERT_EQ(graph->outputs().size(), 1U);
  EXPECT_EQ(graph->blob_names()[size_t(graph->outputs()[0])], "a");
  EXPECT_THAT(graph->blob_names(), Contains("(automatic)"));
}

TEST(Graph, SharedMultipliersMustAgreeWhereBothAreGiven) {
  const auto rate = [&](const std::string& first, const std::string& second) {
    return build_toy(kGraphData + toy_weights("a", "x", 3, "param { name: 'w' " + first + "}") +
                     toy_weights("b", "a", 3, "param { name: 'w' " + second + "}") + kLoss);
  };
  EXPECT_EQ(rate("", "lr_mult: 3 decay_mult: 2")->params()[0].lr_mult, 3);
  EXPECT_EQ(rate("", "lr_mult: 3 decay_mult: 2")->params()[0].decay_mult, 2);
  EXPECT_EQ(rate("lr_mult: 3", "")->params()[0].lr_mult, 3);
  EXPECT_TRUE(rate("lr_mult: 3", "lr_mult: 3").ok());
  EXPECT_THAT(rate("lr_mult: 1", "lr_mult: 3").status().message(),
              HasSubstr("Shared param 'w' has mismatched lr_mult: 1 and 3"));
  EXPECT_THAT(rate("decay_mult: 1", "decay_mult: 0").status().message(),
              HasSubstr("mismatched decay_mult"));
}

TEST(Graph, TooManyParams) {
  EXPECT_THAT(refusal_of(kGraphData + toy_weights("a", "x", 3, "param {} param {} param {}")),
              AllOf(HasSubstr("net:2: layer 'a'"), HasSubstr("Too many params"),
                    HasSubstr("3 param entries for 2 blobs")));
}

TEST(Graph, ALayerInPlaceHasANewBlobOfTheSameName) {
  auto graph = build_toy(kGraphData + toy_weights("b", "x", 3) +
                         toy("m", "Map", "bottom: 'b' top: 'b'") + kLoss);
  ASSERT_TRUE(graph.ok());
  EXPECT_NE(graph->nodes()[2].bottoms[0], graph->nodes()[2].tops[0]);
  EXPECT_THAT(
      refusal_of(kGraphData + toy("m", "Map", "bottom: 'x' bottom: 'label' top: 'y' top: 'x'")),
      HasSubstr("Top blob 'x' produced by multiple sources."));
}

TEST(NetLog, SaysWhatCaffeSays) {
  auto net = parse_net(
      "name: 'toy'\n" + kGraphData + toy_weights("b", "x", 3, "param { name: 'w' }") +
          toy("m", "Map", "bottom: 'b' top: 'b'") +
          toy("t", "Map", "bottom: 'x' top: 't' include { phase: TEST }") +
          toy_weights("c", "b", 3, "param { name: 'w' } include { stage: 'deep' }") + kLoss,
      "net");
  ASSERT_TRUE(net.ok()) << net.status().message();
  caffe::NetState state;
  state.set_phase(caffe::TRAIN);
  auto graph = Graph::build(*net, state, {.types = toy_types(), .fed = {}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  Names lines;
  log_net(*net, state, *graph,
          Logger([&](LogLevel, std::string_view text) { lines.emplace_back(text); }));
  for (const char* line :
       {"The NetState phase (0) differed from the phase (1) specified by a rule in layer t",
        "The NetState did not contain stage 'deep' specified by a rule in layer c",
        "Creating Layer b", "b <- x", "b -> b", "m -> b (in-place)", "Setting up m",
        "Top shape: 2 3 (6)", "    with loss weight 1", "Memory required for data: 100",
        "b needs backward computation.", "data does not need backward computation.",
        "This network produces output loss", "Network initialization done."}) {
    EXPECT_THAT(lines, Contains(line));
  }
  EXPECT_THAT(lines, Contains(HasSubstr("Initializing net from parameters: \nname: \"toy\"")));
}

}  // namespace
}  // namespace cafetiere
