// SPDX-License-Identifier: Apache-2.0
#include "core/graph/phase_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/prototxt.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

caffe::NetState state_of(caffe::Phase phase, int level = 0, std::vector<std::string> stages = {}) {
  caffe::NetState state;
  state.set_phase(phase);
  state.set_level(level);
  for (const std::string& stage : stages) state.add_stage(stage);
  return state;
}

/// Names of the layers of `text` that are there in `state`.
std::vector<std::string> names_in(const std::string& text, const caffe::NetState& state) {
  auto net = parse_net(text, "net");
  EXPECT_TRUE(net.ok()) << net.status().message();
  std::vector<int> kept;
  auto filtered = filter_net(net->param, state, &kept);
  EXPECT_TRUE(filtered.ok()) << filtered.status().message();
  std::vector<std::string> names;
  for (int i = 0; i < filtered->layer_size(); ++i) {
    EXPECT_EQ(filtered->layer(i).name(), net->param.layer(kept[static_cast<size_t>(i)]).name());
    names.push_back(filtered->layer(i).name());
  }
  return names;
}

TEST(PhaseRules, KeepsWhatItsRulesAllow) {
  const std::string net =
      "name: 'n' force_backward: true layer { name: 'both' }"
      "layer { name: 'train' include { phase: TRAIN } }"
      "layer { name: 'test' include { phase: TEST } }"
      "layer { name: 'not_test' exclude { phase: TEST } }";
  EXPECT_THAT(names_in(net, state_of(caffe::TRAIN)), ElementsAre("both", "train", "not_test"));
  EXPECT_THAT(names_in(net, state_of(caffe::TEST)), ElementsAre("both", "test"));
}

TEST(PhaseRules, AnyIncludeRuleIsEnoughAndEveryConditionOfItCounts) {
  const std::string net =
      "layer { name: 'a' include { phase: TRAIN stage: 's' stage: 't' } include { min_level: 2 } }"
      "layer { name: 'b' include { max_level: 1 not_stage: 's' } }";
  EXPECT_THAT(names_in(net, state_of(caffe::TRAIN)), ElementsAre("b"));
  EXPECT_THAT(names_in(net, state_of(caffe::TRAIN, 0, {"s"})), ElementsAre());
  EXPECT_THAT(names_in(net, state_of(caffe::TRAIN, 0, {"t", "s"})), ElementsAre("a"));
  EXPECT_THAT(names_in(net, state_of(caffe::TEST, 2, {"t", "s"})), ElementsAre("a"));
}

TEST(PhaseRules, SaysWhichConditionDidNotHold) {
  auto net = parse_net(
      "layer { name: 'a' include { phase: TEST } include { min_level: 2 } }"
      "layer { name: 'b' include { max_level: -1 } }"
      "layer { name: 'c' include { stage: 's' } }"
      "layer { name: 'd' exclude { not_stage: 't' } }",
      "net");
  ASSERT_TRUE(net.ok()) << net.status().message();
  std::vector<std::string> notes;
  ASSERT_TRUE(filter_net(net->param, state_of(caffe::TRAIN, 1, {"t"}), nullptr, &notes).ok());
  EXPECT_THAT(
      notes,
      ElementsAre(
          "The NetState phase (0) differed from the phase (1) specified by a rule in layer a",
          "The NetState level (1) is above the min_level (2) specified by a rule in layer a",
          "The NetState level (1) is above the max_level (-1) specified by a rule in layer b",
          "The NetState did not contain stage 's' specified by a rule in layer c",
          "The NetState contained a not_stage 't' specified by a rule in layer d"));
}

TEST(PhaseRules, RefusesBothKindsOnOneLayer) {
  auto net = parse_net("layer { name: 'x' include { phase: TRAIN } exclude { level_ : 1 } }", "n");
  ASSERT_FALSE(net.ok());
  net = parse_net("layer { name: 'x' include { phase: TRAIN } exclude { min_level: 1 } }", "n");
  ASSERT_TRUE(net.ok());
  EXPECT_THAT(filter_net(net->param, state_of(caffe::TRAIN), nullptr).status().message(),
              HasSubstr("layer 'x' has both include and exclude"));
}

}  // namespace
}  // namespace cafetiere
