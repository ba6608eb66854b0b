// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/layers/registry.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kFields = "image_data_param { source: 'no.txt' batch_size: 2 }";

TEST(ImageSegData, TakesItsShapesFromWhatIsFed) {
  auto net =
      parse_net(layer("ImageSegData", "top: 'data' top: 'label' top: 'size'", kFields), "net");
  ASSERT_TRUE(net.ok());
  const std::vector<Shape> fed = {Shape{2, 3, 4, 6}, Shape{2, 1, 4, 6}, Shape{2, 1, 1, 2}};
  auto graph = Graph::build(*net, {}, {.types = layer_types(), .fed = {{"L", fed}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(*graph->infer(0), fed);
}

TEST(ImageSegData, Refusals) {
  EXPECT_THAT(refusal(layer("ImageSegData", "top: 'data' top: 'label' top: 'size'", kFields)),
              AllOf(HasSubstr("net:1: layer 'L'"), HasSubstr("'no.txt' is not known")));
}

}  // namespace
}  // namespace cafetiere
