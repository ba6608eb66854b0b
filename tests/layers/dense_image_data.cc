// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/layers/registry.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kFields = "dense_image_data_param { source: 'no.txt' batch_size: 2 }";

TEST(DenseImageData, TakesItsShapesFromWhatIsFed) {
  auto net = parse_net(layer("DenseImageData", "top: 'data' top: 'label'", kFields), "net");
  ASSERT_TRUE(net.ok());
  const std::vector<Shape> fed = {Shape{2, 3, 4, 6}, Shape{2, 1, 4, 6}};
  auto graph = Graph::build(*net, {}, {.types = layer_types(), .fed = {{"L", fed}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(*graph->infer(0), fed);
}

TEST(DenseImageData, Refusals) {
  EXPECT_THAT(refusal(layer("DenseImageData", "top: 'data' top: 'label'", kFields)),
              AllOf(HasSubstr("net:1: layer 'L'"), HasSubstr("'no.txt' is not known")));
}

}  // namespace
}  // namespace cafetiere
