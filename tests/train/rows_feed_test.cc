#include "core/train/rows_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/layers/registry.h"
#include "core/train/feeds.h"

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Graph graph_of(const std::string& layers) {
  auto net = parse_net(layers, "net");
  EXPECT_TRUE(net.ok()) << net.status().message();
  auto graph = Graph::build(*net, {}, {.types = layer_types(), .fed = {}});
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

TEST(RowsFeed, EncodedImagesHaveTheShapeBeforeTheCrop) {
  const Graph graph = graph_of(
      "layer { name: 'in' type: 'MemoryData' top: 'data' top: 'label' "
      "  transform_param { crop_size: 4 } "
      "  memory_data_param { batch_size: 2 channels: 3 height: 6 width: 8 image_encoded: true } }");
  const auto schema = RowSchema::parse(
      R"({"columns": [{"name": "data", "type": "u8"}, {"name": "label", "type": "i32"}]})");
  ASSERT_TRUE(schema.ok());
  const auto fed = bind_rows(graph, *schema, {}, false);
  ASSERT_TRUE(fed.ok()) << fed.status().message();
  EXPECT_EQ(fed->batch, 2);
  EXPECT_TRUE(fed->inputs[0].encoded);
  EXPECT_EQ(fed->inputs[0].row_shape, (Shape{3, 6, 8}));
  EXPECT_FALSE(fed->inputs[1].encoded);
}

TEST(Feeds, RefusesWhatItCannotFeed) {
  const auto error = [](const std::string& layers) {
    NetChoice choice;
    choice.net = *parse_net(layers, "net");
    const auto feeds = open_feeds(choice, 1, {});
    return feeds.ok() ? refuse_unfed(*feeds, "net").message() : feeds.status().message();
  };
  EXPECT_THAT(error("layer { name: 'in' type: 'Input' top: 'x' }"),
              AllOf(HasSubstr("layer 'in'"), HasSubstr("fed by a caller")));
  EXPECT_THAT(error("layer { name: 'pictures' type: 'ImageData' top: 'x' top: 'y' "
                    "image_data_param { source: 'none.txt' } }"),
              AllOf(HasSubstr("net: layer \"pictures\" (ImageData)"), HasSubstr("none.txt")));
}

}  // namespace
}  // namespace cafetiere
