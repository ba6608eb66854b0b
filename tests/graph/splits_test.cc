// SPDX-License-Identifier: Apache-2.0
#include "core/graph/splits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/prototxt.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<caffe::NetParameter> split(const std::string& text, std::vector<int>* origin = nullptr) {
  auto net = parse_net(text, "net");
  EXPECT_TRUE(net.ok()) << net.status().message();
  return insert_splits(net->param, "Split", origin);
}

void expect_split(const std::string& text, const std::string& expected) {
  auto actual = split(text);
  ASSERT_TRUE(actual.ok()) << actual.status().message();
  auto wanted = parse_net(expected, "expected");
  ASSERT_TRUE(wanted.ok()) << wanted.status().message();
  EXPECT_EQ(to_text(*actual), to_text(wanted->param));
  auto again = insert_splits(*actual, "Split", nullptr);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(to_text(*again), to_text(*actual)) << "a net with its splits needs no more";
}

TEST(Splits, LeavesAChainAsItIs) {
  const std::string chain =
      "layer { name: 'data' type: 'Input' top: 'data' }"
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' }"
      "layer { name: 'relu' type: 'ReLU' bottom: 'ip' top: 'ip' }"
      "layer { name: 'out' type: 'Softmax' bottom: 'ip' top: 'out' loss_weight: 0 }";
  expect_split(chain, chain);
}

TEST(Splits, NamesTheSplitAfterBlobProducerAndTop) {
  expect_split(
      "layer { name: 'mnist' type: 'Data' top: 'data' top: 'label' }"
      "layer { name: 'ip2' type: 'InnerProduct' bottom: 'data' top: 'ip2' }"
      "layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip2' bottom: 'label' top: 'accuracy' }"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label' top: 'loss' }",

      "layer { name: 'mnist' type: 'Data' top: 'data' top: 'label' }"
      "layer { name: 'label_mnist_1_split' type: 'Split' bottom: 'label'"
      "        top: 'label_mnist_1_split_0' top: 'label_mnist_1_split_1' }"
      "layer { name: 'ip2' type: 'InnerProduct' bottom: 'data' top: 'ip2' }"
      "layer { name: 'ip2_ip2_0_split' type: 'Split' bottom: 'ip2'"
      "        top: 'ip2_ip2_0_split_0' top: 'ip2_ip2_0_split_1' }"
      "layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip2_ip2_0_split_0'"
      "        bottom: 'label_mnist_1_split_0' top: 'accuracy' }"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2_ip2_0_split_1'"
      "        bottom: 'label_mnist_1_split_1' top: 'loss' }");
}

TEST(Splits, TheLastInPlaceLayerIsTheProducer) {
  expect_split(
      "layer { name: 'd' type: 'Input' top: 'x' }"
      "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'x' }"
      "layer { name: 'a' type: 'Power' bottom: 'x' top: 'a' }"
      "layer { name: 'b' type: 'Power' bottom: 'x' top: 'b' }",

      "layer { name: 'd' type: 'Input' top: 'x' }"
      "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'x' }"
      "layer { name: 'x_r_0_split' type: 'Split' bottom: 'x' top: 'x_r_0_split_0'"
      "        top: 'x_r_0_split_1' }"
      "layer { name: 'a' type: 'Power' bottom: 'x_r_0_split_0' top: 'a' }"
      "layer { name: 'b' type: 'Power' bottom: 'x_r_0_split_1' top: 'b' }");
}

TEST(Splits, ALossWeightMovesToTheFirstTopOfTheSplit) {
  expect_split(
      "layer { name: 'd' type: 'Input' top: 'x' }"
      "layer { name: 'l' type: 'EuclideanLoss' bottom: 'x' top: 'l' loss_weight: 2.5 }"
      "layer { name: 'p' type: 'Power' bottom: 'l' top: 'p' }",

      "layer { name: 'd' type: 'Input' top: 'x' }"
      "layer { name: 'l' type: 'EuclideanLoss' bottom: 'x' top: 'l' }"
      "layer { name: 'l_l_0_split' type: 'Split' bottom: 'l' top: 'l_l_0_split_0'"
      "        top: 'l_l_0_split_1' loss_weight: 2.5 loss_weight: 0 }"
      "layer { name: 'p' type: 'Power' bottom: 'l_l_0_split_1' top: 'p' }");
}

TEST(Splits, KeepsTheLossWeightOfAnotherTop) {
  auto net = split(
      "layer { name: 'd' type: 'Input' top: 'x' }"
      "layer { name: 's' type: 'Slice' bottom: 'x' top: 'a' top: 'b' loss_weight: 1 loss_weight: 3 "
      "}"
      "layer { name: 'p' type: 'Power' bottom: 'a' top: 'p' }");
  ASSERT_TRUE(net.ok());
  EXPECT_THAT(net->layer(1).loss_weight(), ElementsAre(0, 3));
}

TEST(Splits, OriginPointsAtTheProducer) {
  std::vector<int> origin;
  auto net = split(
      "layer { name: 'd' type: 'Input' top: 'x' }"
      "layer { name: 'a' type: 'Power' bottom: 'x' top: 'a' }"
      "layer { name: 'b' type: 'Power' bottom: 'x' top: 'b' }",
      &origin);
  ASSERT_TRUE(net.ok());
  EXPECT_THAT(origin, ElementsAre(0, 0, 1, 2));
}

TEST(Splits, AnUnknownBottomNamesLayerIndexAndTheNearestBlob) {
  auto net = split(
      "layer { name: 'd' type: 'Input' top: 'data' }"
      "layer { name: 'ip' type: 'Power' bottom: 'dta' top: 'ip' }");
  EXPECT_EQ(net.status().message(),
            "Unknown bottom blob 'dta' (layer 'ip', bottom index 0); did you mean \"data\"?");
}

}  // namespace
}  // namespace cafetiere
