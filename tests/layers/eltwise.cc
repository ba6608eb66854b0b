// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kNames{"a", "b", "c", "d"};

std::string eltwise(const std::vector<int64_t>& dims, size_t bottoms, const std::string& fields) {
  std::string net, wires;
  for (size_t i = 0; i < bottoms; ++i) {
    net += input(kNames[i], dims);
    wires += "bottom: '" + kNames[i] + "' ";
  }
  return net + layer("Eltwise", wires + "top: 'y'", "eltwise_param { " + fields + " }");
}

TEST(Eltwise, Sum) {
  check_layer({eltwise({2, 3, 4, 2}, 2, "")});
  check_layer({eltwise({2, 3, 4, 2}, 4, "operation: SUM")});
  check_layer({eltwise({2, 7}, 3, "coeff: 1 coeff: -0.5 coeff: 2")});
  check_layer({eltwise({2, 7}, 2, "coeff: 0.25 coeff: 1")});
}

TEST(Eltwise, Product) {
  check_layer({eltwise({2, 3, 4, 2}, 2, "operation: PROD")});
  check_layer({eltwise({2, 7}, 4, "operation: PROD")});
  check_layer({eltwise({2, 7}, 3, "operation: PROD stable_prod_grad: false")});
}

// Shifted, so that no two bottoms come near each other.
TEST(Eltwise, Maximum) {
  const std::string net =
      input("x", {2, 3, 4, 2}) + input("a", {2, 3, 4, 2}) + input("c", {2, 3, 4, 2}) +
      layer("Power", "name: 'one' bottom: 'a' top: 'b'", "power_param { shift: 0.02 }") +
      layer("Power", "name: 'two' bottom: 'c' top: 'd'", "power_param { shift: 0.04 }");
  const std::string fields = "eltwise_param { operation: MAX coeff: 1 coeff: 2 ";
  check_layer({net + layer("Eltwise", "bottom: 'x' bottom: 'b' top: 'y'", fields + "}")});
  check_layer({net + layer("Eltwise", "bottom: 'x' bottom: 'b' bottom: 'd' top: 'y'",
                           fields + "coeff: 3 }")});
}

TEST(Eltwise, OfOneBlobTwice) {
  for (const std::string operation : {"SUM", "PROD"}) {
    check_layer({input("x", {2, 5}) + layer("Eltwise", "bottom: 'x' bottom: 'x' top: 'y'",
                                            "eltwise_param { operation: " + operation + " }")});
  }
}

// A residual block: the two bottoms come in different layouts.
TEST(Eltwise, BetweenConvolutions) {
  const auto conv = [](const std::string& from, const std::string& to) {
    return layer("Convolution", "name: '" + to + "' bottom: '" + from + "' top: '" + to + "'",
                 "convolution_param { num_output: 3 kernel_size: 3 pad: 1 }");
  };
  for (const std::string operation : {"SUM", "PROD", "MAX"}) {
    check_layer({.layers = input("x", {2, 3, 5, 4}) + conv("x", "a") +
                           layer("Eltwise", "bottom: 'x' bottom: 'a' top: 'b'",
                                 "eltwise_param { operation: " + operation + " }") +
                           layer("ReLU", "name: 'relu' bottom: 'b' top: 'b'") + conv("b", "c"),
                 .numeric = false});
  }
}

/// The gradients of all bottoms of a maximum at one element, dy being 1.
std::vector<float> shares(const std::vector<float>& values) {
  auto net = TestNet::build(eltwise({1}, values.size(), "operation: MAX"), caffe::TRAIN);
  EXPECT_TRUE(net.ok());
  const auto ref = make_ref_device();
  auto plan = (*net)->plan(*ref, 0);
  EXPECT_TRUE(plan.ok());
  for (size_t i = 0; i < values.size(); ++i) *(*plan)->inputs()[i].data = values[i];
  *(*plan)->outputs()[0].diff = 1;
  ThreadPool pool(1);
  EXPECT_TRUE((*plan)->run(pool, {}).ok());
  std::vector<float> diffs;
  for (const Plan::Blob& blob : (*plan)->input_diffs()) diffs.push_back(*blob.data);
  return diffs;
}

TEST(Eltwise, TiesOfAMaximum) {
  EXPECT_THAT(shares({5, 5}), ElementsAre(0, 1)) << "of the first two the second";
  EXPECT_THAT(shares({5, 5, 5}), ElementsAre(0, 1, 0)) << "a later one must be larger";
  EXPECT_THAT(shares({5, 4, 5, 5}), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(shares({3, 4, 5, 5}), ElementsAre(0, 0, 1, 0));
}

TEST(Eltwise, StableProductGradient) {
  const Figures in{{"a", {0}}, {"b", {3}}};
  const auto ref = make_ref_device();
  const auto diff = [&](const std::string& stable) {
    const std::string net = eltwise({1}, 2, "operation: PROD stable_prod_grad: " + stable);
    return evaluate(net, in, caffe::TRAIN, *ref)["a diff"][0];
  };
  EXPECT_EQ(diff("true"), 0);
  EXPECT_TRUE(std::isnan(diff("false"))) << "0 / 0, as the fast form has it";
}

TEST(Eltwise, Refusals) {
  EXPECT_THAT(refusal(eltwise({2, 3}, 1, "")), HasSubstr("has 1 bottom(s) but takes at least 2"));
  EXPECT_THAT(refusal(eltwise({2, 3}, 3, "coeff: 1")),
              AllOf(HasSubstr("net:4: layer 'L'"), HasSubstr("1 time(s) for 3 bottoms")));
  EXPECT_THAT(refusal(eltwise({2, 3}, 2, "operation: PROD coeff: 1 coeff: 1")),
              HasSubstr("a product takes no coeff"));
  EXPECT_THAT(refusal(input("a", {2, 3}) + input("b", {2, 4}) +
                      layer("Eltwise", "bottom: 'a' bottom: 'b' top: 'y'")),
              AllOf(HasSubstr("one shape"), HasSubstr("2 4 (8)")));
}

// The old form of the schema knows these types too.
TEST(Eltwise, AmongLayersOfTheV1Form) {
  const char* net =
      "input: 'x' input_dim: 2 input_dim: 4 input_dim: 3 input_dim: 3\n"
      "layers { name: 's' type: SLICE bottom: 'x' top: 'a' top: 'b' }\n"
      "layers { name: 't' type: TANH bottom: 'a' top: 'a' }\n"
      "layers { name: 'g' type: SIGMOID bottom: 'b' top: 'b' }\n"
      "layers { name: 'p' type: POWER bottom: 'b' top: 'b' power_param { scale: 2 } }\n"
      "layers { name: 'e' type: ELTWISE bottom: 'a' bottom: 'b' top: 'y'\n"
      "  eltwise_param { operation: PROD } }\n"
      "layers { name: 'q' type: SILENCE bottom: 'y' }\n";
  EXPECT_EQ(refusal(net), "");
}

}  // namespace
}  // namespace cafetiere
