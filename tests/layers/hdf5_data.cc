// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/layers/registry.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kHdf5Param = "hdf5_data_param { source: 'no.txt' batch_size: 4 }";

TEST(HDF5Data, TakesItsShapesFromWhatIsFed) {
  auto net = parse_net(layer("HDF5Data", "top: 'a' top: 'b' top: 'c'", kHdf5Param), "net");
  ASSERT_TRUE(net.ok());
  const std::vector<Shape> fed = {Shape{4, 3}, Shape{4}, Shape{4, 2, 2, 2, 2}};
  auto graph = Graph::build(*net, {}, {.types = layer_types(), .fed = {{"L", fed}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(*graph->infer(0), fed);
}

TEST(HDF5Data, Refusals) {
  EXPECT_THAT(refusal(layer("HDF5Data", "top: 'data'", kHdf5Param)),
              AllOf(HasSubstr("net:1: layer 'L'"), HasSubstr("'no.txt' is not known")));
  EXPECT_THAT(refusal(layer("HDF5Data", "", kHdf5Param)), HasSubstr("0 top(s)"));
}

}  // namespace
}  // namespace cafetiere
