// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/layers/registry.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kWindowParam = "window_data_param { source: 'no.txt' batch_size: 4 }";

TEST(WindowData, TakesItsShapesFromWhatIsFed) {
  auto net = parse_net(layer("WindowData", "top: 'data' top: 'label'", kWindowParam), "net");
  ASSERT_TRUE(net.ok());
  auto graph = Graph::build(
      *net, {}, {.types = layer_types(), .fed = {{"L", {Shape{4, 3, 6, 6}, Shape{4}}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_THAT(*graph->infer(0), ::testing::ElementsAre(Shape{4, 3, 6, 6}, Shape{4}));
}

TEST(WindowData, Refusals) {
  EXPECT_THAT(refusal(layer("WindowData", "top: 'data' top: 'label'", kWindowParam)),
              AllOf(HasSubstr("net:1: layer 'L'"), HasSubstr("'no.txt' is not known")));
  EXPECT_THAT(refusal(layer("WindowData", "top: 'data'", kWindowParam)),
              HasSubstr("1 top(s) but takes exactly 2"));
}

}  // namespace
}  // namespace cafetiere
