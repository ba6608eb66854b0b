// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string concat(const std::vector<std::vector<int64_t>>& shapes, const std::string& fields) {
  std::string net, wires;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string name = std::to_string(i);
    net += input(name, shapes[i]);
    wires += "bottom: '" + name + "' ";
  }
  return net + layer("Concat", wires + "top: 'y'", "concat_param { " + fields + " }");
}

TEST(Concat, Axes) {
  check_layer({concat({{2, 3, 4, 2}, {2, 1, 4, 2}, {2, 5, 4, 2}}, "")});
  check_layer({concat({{2, 3}, {2, 4}}, "concat_dim: 1")});
  check_layer({concat({{2, 3, 4}, {2, 3, 1}}, "axis: -1")});
  check_layer({concat({{2, 3, 4}, {2, 3, 4}}, "axis: 0")});
  check_layer({concat({{2, 3, 4}}, "")});
}

TEST(Concat, OfConvolutions) {
  const auto conv = [](const std::string& name, const std::string& fields) {
    return layer("Convolution", "name: '" + name + "' bottom: 'x' top: '" + name + "'",
                 "convolution_param { " + fields + " }");
  };
  check_layer({input("x", {2, 3, 5, 4}) + conv("a", "num_output: 2 kernel_size: 1") +
               conv("b", "num_output: 3 kernel_size: 3 pad: 1") +
               layer("Concat", "bottom: 'a' bottom: 'b' bottom: 'x' top: 'y'") +
               layer("Convolution", "name: 'c' bottom: 'y' top: 'z'",
                     "convolution_param { num_output: 2 kernel_size: 2 }")});
}

TEST(Concat, Refusals) {
  EXPECT_THAT(refusal(concat({{2, 3, 4}, {2, 3, 5}}, "")),
              AllOf(HasSubstr("net:3: layer 'L'"), HasSubstr("may differ in axis 1 alone")));
  EXPECT_THAT(refusal(concat({{2, 3}, {2, 3}}, "axis: 1 concat_dim: 1")), HasSubstr("not both"));
  EXPECT_THAT(refusal(concat({{2, 3}, {2, 3}}, "axis: 2")), HasSubstr("axis 2"));
}

}  // namespace
}  // namespace cafetiere
