// SPDX-License-Identifier: Apache-2.0
#include "core/data/image_list_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/data/datum.h"
#include "core/data/db.h"
#include "tests/data/sources.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// An image of one colour: blue, green, red = value, value + 1, value + 2.
Image plain(int height, int width, int value) {
  Image image{height, width, 3, {}};
  for (int i = 0; i < height * width * 3; ++i) image.pixels.push_back(uint8_t(value + i % 3));
  return image;
}

/// Five images of one colour, 10 i, and a list that labels them 0 to 4.
struct ImageFolder {
  TempDir dir;
  std::string list;
  ImageFolder() {
    std::string lines;
    for (int i = 0; i < 5; ++i) {
      dir.write("an image " + std::to_string(i) + ".png",
                *encode_image(plain(4, 6, 10 * i), "png"));
      lines += "an image " + std::to_string(i) + ".png " + std::to_string(i) + "\n";
    }
    list = dir.write("list.txt", lines);
  }
  std::string layer(const std::string& fields, const std::string& others = "") const {
    return "type: 'ImageData' top: 'data' top: 'label' " + others +
           " image_data_param { source: '" + list + "' root_folder: '" + dir.path("") + "' " +
           fields + " }";
  }
};

TEST(ImageListSource, ReadsInOrderAndWraps) {
  const ImageFolder folder;
  const auto source = open_layer(folder.layer("batch_size: 3"));
  EXPECT_EQ(source->top_shapes(), (std::vector<Shape>{Shape{3, 3, 4, 6}, Shape{3}}));
  EXPECT_THAT(labels(*source, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(labels(*source, 1), ElementsAre(3, 4, 0));
  Tops tops;
  ASSERT_TRUE(fill(*source, 0, 1, &tops).ok());
  EXPECT_EQ(tops[0][0], 30);       // blue of image 3
  EXPECT_EQ(tops[0][2 * 24], 32);  // its red
}

TEST(ImageListSource, ShardsTakeTurns) {
  const ImageFolder folder;
  const auto source = open_layer(folder.layer("batch_size: 2"), true, 2);
  EXPECT_THAT(labels(*source, 0, 0), ElementsAre(0, 2));
  EXPECT_THAT(labels(*source, 0, 1), ElementsAre(1, 3));
}

TEST(ImageListSource, ShufflesEveryEpochAnew) {
  const ImageFolder folder;
  const auto source = open_layer(folder.layer("batch_size: 5 shuffle: true"));
  std::map<std::vector<float>, int> orders;
  for (int epoch = 0; epoch < 8; ++epoch) {
    const std::vector<float> order = labels(*source, epoch);
    EXPECT_THAT(order, testing::UnorderedElementsAre(0, 1, 2, 3, 4));
    ++orders[order];
  }
  EXPECT_GT(orders.size(), 4u);
  EXPECT_EQ(labels(*source, 3),
            labels(*open_layer(folder.layer("batch_size: 5 shuffle: true")), 3));
}

TEST(ImageListSource, SkipsInTheFirstEpochOnly) {
  const ImageFolder folder;
  std::map<float, int> firsts;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto source = open_layer(folder.layer("batch_size: 1 rand_skip: 4"), false, 1, seed);
    const float first = labels(*source, 0)[0];
    ++firsts[first];
    EXPECT_EQ(labels(*source, 5 - int64_t(first))[0], 0);
  }
  EXPECT_EQ(firsts.size(), 4u);  // 0 to 3
}

TEST(ImageListSource, ResizesGraysAndCrops) {
  const ImageFolder folder;
  const auto small =
      open_layer(folder.layer("batch_size: 1 new_height: 2 new_width: 3 is_color: false"));
  EXPECT_EQ(small->top_shapes()[0], (Shape{1, 1, 2, 3}));
  Tops tops;
  ASSERT_TRUE(fill(*small, 0, 2, &tops).ok());
  EXPECT_THAT(tops[0], Each(21));
  // Images of different sizes become equal by a crop.
  folder.dir.write("large.png", *encode_image(plain(9, 9, 100), "png"));
  folder.dir.write("list.txt", "an image 0.png 0\nlarge.png 1\n");
  const auto cropped = open_layer(
      folder.layer("batch_size: 2", "transform_param { crop_size: 4 scale: 0.5 }"), true);
  EXPECT_EQ(cropped->top_shapes()[0], (Shape{2, 3, 4, 4}));
  ASSERT_TRUE(fill(*cropped, 0, 0, &tops).ok());
  EXPECT_EQ(tops[0][48], 50);
  EXPECT_THAT(error_of(folder.layer("batch_size: 2")),
              AllOf(HasSubstr("layer \"L\" (ImageData)"), HasSubstr("list.txt:2"),
                    HasSubstr("3 x 9 x 9"), HasSubstr("new_height")));
}

TEST(ImageListSource, Refusals) {
  const ImageFolder folder;
  const auto error = [&](const std::string& list) {
    folder.dir.write("list.txt", list);
    return error_of(folder.layer("batch_size: 1"));
  };
  EXPECT_THAT(error("an image 0.png 0\n\nan image 1.png one\n"),
              AllOf(HasSubstr("list.txt:3"), HasSubstr("integer label")));
  EXPECT_THAT(error("alone\n"), HasSubstr("list.txt:1"));
  EXPECT_THAT(error("\n \n"), HasSubstr("empty"));
  EXPECT_THAT(error("missing.png 1\n"),
              AllOf(HasSubstr("list.txt:1"), HasSubstr("Could not load missing.png"),
                    HasSubstr("File not found")));
  folder.dir.write("bad.png", "\x89PNG\r\n\x1a\n and then nothing");
  EXPECT_THAT(error("bad.png 1\n"), AllOf(HasSubstr("Could not load bad.png"), HasSubstr("PNG:")));
  EXPECT_THAT(error_of(folder.layer("new_height: 5")), HasSubstr("both new_height and new_width"));
  EXPECT_THAT(error_of("type: 'ImageData' top: 'a' top: 'b'"), HasSubstr("no source"));
  EXPECT_THAT(error_of("type: 'ImageData' top: 'a'"), HasSubstr("1 tops"));
}

TEST(DbSource, DecodesRecords) {
  const TempDir dir;
  auto db = create_db(dir.path("db"), DbBackend::kLmdb);
  ASSERT_TRUE(db.ok());
  caffe::Datum color, gray, small;
  for (caffe::Datum* datum : {&color, &gray, &small}) datum->set_encoded(true);
  color.set_data(*encode_image(plain(4, 6, 50), "png"));
  gray.set_data(*encode_image(Image{4, 6, 1, std::vector<uint8_t>(24, 90)}, "png"));
  small.set_data(*encode_image(plain(3, 6, 70), "png"));
  (*db)->put("0", color.SerializeAsString());
  (*db)->put("1", gray.SerializeAsString());
  (*db)->put("2", small.SerializeAsString());
  ASSERT_TRUE((*db)->commit().ok());
  const auto layer = [&](const std::string& transform) {
    return "type: 'Data' top: 'data' transform_param { " + transform + " } data_param { source: '" +
           dir.path("db") + "' backend: LMDB batch_size: 2 }";
  };
  const auto colored = open_layer(layer("force_color: true"));
  EXPECT_EQ(colored->top_shapes()[0], (Shape{2, 3, 4, 6}));
  Tops tops;
  ASSERT_TRUE(fill(*colored, 0, 0, &tops).ok());
  EXPECT_EQ(tops[0][0], 50);
  EXPECT_EQ(tops[0][3 * 24], 90);
  const auto grays = open_layer(layer("force_gray: true"));
  ASSERT_TRUE(fill(*grays, 0, 0, &tops).ok());
  EXPECT_EQ(tops[0][0], 51);
  EXPECT_THAT(fill(*grays, 0, 1, &tops).message(),
              AllOf(HasSubstr("record \"2\""), HasSubstr("1 x 3 x 6"), HasSubstr("crop_size")));
  EXPECT_THAT(error_of(layer("")), AllOf(HasSubstr("record \"1\""), HasSubstr("1 x 4 x 6")));
  EXPECT_THAT(error_of(layer("force_gray: true force_color: true")), HasSubstr("keep one"));
}

}  // namespace
}  // namespace cafetiere
