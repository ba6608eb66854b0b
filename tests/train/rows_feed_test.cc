// SPDX-License-Identifier: Apache-2.0
#include "core/train/rows_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/layers/registry.h"
#include "core/train/feeds.h"
#include "tests/data/rows.h"

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

// CaffeOnSpark's layer: raw images with their channels innermost, a sequence with the batch behind
// it, a label as text.
TEST(RowsFeed, CosDataTakesEachColumnAsItsTopSays) {
  const Graph graph = graph_of(R"(
    layer { name: 'in' type: 'CoSData' top: 'image' top: 'words' top: 'label'
      cos_data_param { batch_size: 2
        top { name: 'image' type: RAW_IMAGE channels: 3 height: 1 width: 2
              transform_param { scale: 0.5 } }
        top { name: 'words' type: INT_ARRAY channels: 3 sample_num_axes: 1 transpose: true }
        top { name: 'label' type: STRING sample_num_axes: 0 } } })");
  const auto schema = RowSchema::parse(
      R"({"columns": [{"name": "image", "type": "u8"}, {"name": "words", "type": "i32"},
                      {"name": "label", "type": "string"}], "id": ""})");
  ASSERT_TRUE(schema.ok());
  const auto fed = bind_rows(graph, *schema, {}, false);
  ASSERT_TRUE(fed.ok()) << fed.status().message();
  EXPECT_EQ(fed->batch, 2);
  RowTable table(*schema);
  RowBytes bytes;
  for (int row = 0; row < 2; ++row) {
    const auto at = uint8_t(10 * row);
    bytes.add_all<uint8_t>({uint8_t(at + 1), uint8_t(at + 2), uint8_t(at + 3), uint8_t(at + 4),
                            uint8_t(at + 5), uint8_t(at + 6)});
    bytes.add_all<int32_t>({row, row + 100, row + 200}).text(row ? " 1" : "0");
  }
  ASSERT_TRUE(table.append(2, bytes.span()).ok());
  auto source = make_rows_source(nullptr, std::move(table), 1, *fed, true, 1);
  ASSERT_TRUE(source.ok()) << source.status().message();
  std::vector<float> image(12), words(6), label(2);
  float* const tops[] = {image.data(), words.data(), label.data()};
  ASSERT_TRUE((*source)->fill(0, 0, tops).ok());
  const size_t first = label[0] == 0 ? 0 : 1;  // where row 0 came to lie
  const auto row0 = std::span(image).subspan(6 * first, 6);
  EXPECT_THAT(row0, testing::ElementsAre(0.5, 2, 1, 2.5, 1.5, 3)) << "planes of 1 4, 2 5, 3 6";
  EXPECT_EQ(words[first], 0);
  EXPECT_EQ(words[2 + first], 100);
  EXPECT_EQ(words[4 + first], 200);
  EXPECT_EQ(words[4 + 1 - first], 201);
}

TEST(Feeds, RefusesWhatItCannotFeed) {
  const auto error = [](const std::string& layers) {
    NetChoice choice;
    choice.net = *parse_net(layers, "net");
    const auto feeds = open_feeds(choice, 1, {});
    return feeds.ok() ? refuse_unfed(*feeds, "net").message() : feeds.status().message();
  };
  EXPECT_THAT(error("layer { name: 'in' type: 'Input' top: 'x' }"),
              AllOf(HasSubstr("layer 'in'"), HasSubstr("fed by a program")));
  EXPECT_THAT(error("layer { name: 'table' type: 'CoSData' top: 'x' }"),
              AllOf(HasSubstr("layer 'table'"), HasSubstr("fed by a program")));
  EXPECT_THAT(error("layer { name: 'pictures' type: 'ImageData' top: 'x' top: 'y' "
                    "image_data_param { source: 'none.txt' } }"),
              AllOf(HasSubstr("net: layer \"pictures\" (ImageData)"), HasSubstr("none.txt")));
}

}  // namespace
}  // namespace cafetiere
