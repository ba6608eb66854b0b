// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/layers/registry.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kImageParam = "image_data_param { source: 'no.txt' batch_size: 4 }";

TEST(ImageData, TakesItsShapesFromWhatIsFed) {
  auto net = parse_net(layer("ImageData", "top: 'data' top: 'label'", kImageParam), "net");
  ASSERT_TRUE(net.ok());
  auto graph = Graph::build(
      *net, {}, {.types = layer_types(), .fed = {{"L", {Shape{4, 3, 6, 5}, Shape{4}}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_THAT(*graph->infer(0), ::testing::ElementsAre(Shape{4, 3, 6, 5}, Shape{4}));
}

TEST(ImageData, Refusals) {
  EXPECT_THAT(refusal(layer("ImageData", "top: 'data' top: 'label'", kImageParam)),
              AllOf(HasSubstr("net:1: layer 'L'"), HasSubstr("'no.txt' is not known")));
  EXPECT_THAT(refusal(layer("ImageData", "top: 'data'", kImageParam)),
              HasSubstr("1 top(s) but takes exactly 2"));
}

}  // namespace
}  // namespace cafetiere
