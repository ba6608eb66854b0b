// SPDX-License-Identifier: Apache-2.0
#include "core/data/window_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/data/mean_file.h"
#include "tests/data/sources.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// One image of 8 x 10 (height x width) whose colours tell the place, with windows of an object
/// (label 2), of background, and of neither.
struct WindowFolder {
  TempDir dir;
  WindowFolder() {
    Image image{8, 10, 3, {}};
    for (int y = 0; y < 8; ++y) {
      for (int x = 0; x < 10; ++x) {
        for (const int value : {20 * y, 20 * x, 100}) image.pixels.push_back(uint8_t(value));
      }
    }
    dir.write("image.png", *encode_image(image, "png"));
    write("2 0.9 2 3 5 6\n5 0.4 0 0 3 3\n0 0.1 6 0 9 3\n");
  }
  void write(const std::string& windows) const {
    const auto count = std::count(windows.begin(), windows.end(), '\n');
    dir.write("windows.txt", "# 0\nimage.png\n3\n8\n10\n" + std::to_string(count) + "\n" + windows);
  }
  std::string layer(const std::string& fields,
                    const std::string& transform = "crop_size: 4") const {
    return "type: 'WindowData' top: 'data' top: 'label' transform_param { " + transform +
           " } window_data_param { source: '" + dir.path("windows.txt") + "' root_folder: '" +
           dir.path("") + "' batch_size: 4 bg_threshold: 0.3 " + fields + " }";
  }
};

TEST(WindowSource, TakesBackgroundThenObjects) {
  const WindowFolder folder;
  const auto source = open_layer(folder.layer("scale: 2", "crop_size: 4 mean_value: 10 scale: 99"));
  EXPECT_EQ(source->top_shapes(), (std::vector<Shape>{Shape{4, 3, 4, 4}, Shape{4}}));
  Tops tops;
  ASSERT_TRUE(fill(*source, 0, 0, &tops).ok());
  EXPECT_THAT(tops[1], ElementsAre(0, 0, 0, 2));
  const float* object = tops[0].data() + 3 * 48;
  EXPECT_EQ(object[0], (20 * 3 - 10) * 2);            // blue: row 3
  EXPECT_EQ(object[16], (20 * 2 - 10) * 2);           // green: column 2
  EXPECT_EQ(object[16 + 3 * 4 + 3], (100 - 10) * 2);  // column 5
  EXPECT_EQ(tops[0][16], (20 * 6 - 10) * 2);          // background begins at column 6
}

TEST(WindowSource, PadsWithContextAndZerosOutside) {
  const WindowFolder folder;
  // The window of 4 x 4 at the corner gets 2 of 8 pixels around it: what is outside stays 0.
  folder.write("1 0.9 0 0 3 3\n");
  const auto source = open_layer(folder.layer("fg_fraction: 1 context_pad: 2", "crop_size: 8"));
  Tops tops;
  ASSERT_TRUE(fill(*source, 0, 0, &tops).ok());
  const auto at = [&](int c, int y, int x) { return tops[0][size_t(c * 64 + y * 8 + x)]; };
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(at(2, 0, i), 0);
    EXPECT_EQ(at(2, 1, i), 0);
    EXPECT_EQ(at(2, i, 1), 0);
  }
  EXPECT_EQ(at(2, 2, 2), 100);
  EXPECT_EQ(at(2, 7, 7), 100);
}

/// The mean's width alone says where in it a crop lies, as in the reference.
TEST(WindowSource, TakesTheMeanOfAnImageThatIsNotSquare) {
  const WindowFolder folder;
  folder.write("1 0.9 0 0 3 3\n");
  MeanImage mean{{3, 5, 6}, std::vector<float>(90)};
  std::iota(mean.values.begin(), mean.values.end(), 0.F);
  const std::string path = folder.dir.path("mean");
  ASSERT_TRUE(write_mean_image(path, mean).ok());
  const std::string transform = "crop_size: 4 mean_file: '" + path + "'";
  const auto source = open_layer(folder.layer("fg_fraction: 1", transform));
  Tops tops;
  ASSERT_TRUE(fill(*source, 0, 0, &tops).ok());
  EXPECT_EQ(tops[0][0], 0 - 7);                  // row 1, column 1 of the mean
  EXPECT_EQ(tops[0][15], 20 * 3 - (4 * 6 + 4));  // row 4, column 4
  ASSERT_TRUE(write_mean_image(path, {{3, 4, 6}, std::vector<float>(72)}).ok());
  EXPECT_THAT(error_of(folder.layer("fg_fraction: 1", transform)), HasSubstr("make it square"));
}

TEST(WindowSource, MirrorsAndTakesSquares) {
  const WindowFolder folder;
  folder.write("1 0.9 2 2 5 3\n");
  const auto source = open_layer(folder.layer(
      "fg_fraction: 1 crop_mode: 'square' cache_images: true", "crop_size: 5 mirror: true"));
  bool seen[2] = {false, false};
  for (int step = 0; step < 8; ++step) {
    Tops tops;
    ASSERT_TRUE(fill(*source, 0, step, &tops).ok());
    for (size_t row = 0; row < 4; ++row) {
      const float* green = tops[0].data() + row * 75 + 25;
      EXPECT_NE(green[0], green[4]);
      seen[green[0] < green[4]] = true;
    }
  }
  EXPECT_TRUE(seen[0] && seen[1]);
}

TEST(WindowSource, Refusals) {
  const WindowFolder folder;
  EXPECT_THAT(error_of(folder.layer("", "")), HasSubstr("crop_size is 0"));
  EXPECT_THAT(error_of(folder.layer("context_pad: 2")), HasSubstr("context_pad 2"));
  EXPECT_THAT(error_of(folder.layer("crop_mode: 'round'")), HasSubstr("\"round\""));
  EXPECT_THAT(error_of(folder.layer("fg_threshold: 0.95")), HasSubstr("fg_threshold"));
  EXPECT_THAT(error_of(folder.layer("", "crop_size: 4 mean_value: 1 mean_value: 2")),
              HasSubstr("2 mean_values for 3 channels"));
  const auto error = [&](const std::string& windows) {
    folder.write(windows);
    return error_of(folder.layer("fg_fraction: 1"));
  };
  EXPECT_THAT(error("0 0.9 1 1 2 2\n"), AllOf(HasSubstr("windows.txt:7"), HasSubstr("above 0")));
  EXPECT_THAT(error("1 0.9 1 1 two 2\n"), AllOf(HasSubstr("windows.txt:7"), HasSubstr("x2")));
  EXPECT_THAT(error("1 0.9 20 20 30 30\n"),
              AllOf(HasSubstr("windows.txt:7"), HasSubstr("image.png"), HasSubstr("outside")));
  EXPECT_THAT(error("1 0.9 5 5 2 2\n"), HasSubstr("empty"));
  EXPECT_THAT(error("1 0.9 -2147483648 0 2147483647 5\n"), HasSubstr(""));
  folder.dir.write("windows.txt", "# 0 image.png 3 8 10 2000000000 1 0.9 1 1 2 2");
  EXPECT_THAT(error_of(folder.layer("")), HasSubstr("end of the file"));
  folder.dir.write("windows.txt", "image.png");
  EXPECT_THAT(error_of(folder.layer("")), HasSubstr("windows.txt:1"));
  folder.dir.write("windows.txt", "# 0 none.png 3 8 10 1 1 0.9 1 1 2 2");
  EXPECT_THAT(error_of(folder.layer("fg_fraction: 1")), HasSubstr("File not found"));
}

}  // namespace
}  // namespace cafetiere
