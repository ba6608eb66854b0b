// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/layers/registry.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const char* const kNet =
    "layer { name: 'L' type: 'Data' top: 'data' top: 'label' "
    "data_param { source: 'nowhere' batch_size: 4 } }";

TEST(Data, TakesItsShapesFromWhatIsFed) {
  auto net = parse_net(kNet, "net");
  ASSERT_TRUE(net.ok());
  auto graph = Graph::build(
      *net, {}, {.types = layer_types(), .fed = {{"L", {Shape{4, 3, 6, 5}, Shape{4}}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_THAT(*graph->infer(0), ::testing::ElementsAre(Shape{4, 3, 6, 5}, Shape{4}));
  EXPECT_THAT(*graph->infer(9), ::testing::ElementsAre(Shape{9, 3, 6, 5}, Shape{9}));
}

TEST(Data, Refusals) {
  EXPECT_THAT(refusal(kNet), AllOf(HasSubstr("net:1: layer 'L'"), HasSubstr("'nowhere'")));
  EXPECT_THAT(refusal(input("x", {2}) + layer("Data", "bottom: 'x' top: 'data'")),
              HasSubstr("1 bottom(s) but takes exactly 0"));
}

}  // namespace
}  // namespace cafetiere
