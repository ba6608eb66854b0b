// SPDX-License-Identifier: Apache-2.0
#include "core/data/label_image_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/data/sources.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// Blue tells the row, green the column, red the image; a label is row + 10 column.
struct Folder {
  TempDir dir;
  Folder() {
    add("a", 4, 6, 1);
    add("b", 4, 6, 2);
    list("a.png a_label.png\n\nb.png  b_label.png\r\n");
  }
  void add(const std::string& name, int height, int width, int value) const {
    Image image{height, width, 3, {}}, label{height, width, 1, {}};
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (const int v : {10 * y, 10 * x, value}) image.pixels.push_back(uint8_t(v));
        label.pixels.push_back(uint8_t(y + 10 * x));
      }
    }
    dir.write(name + ".png", *encode_image(image, "png"));
    dir.write(name + "_label.png", *encode_image(label, "png"));
  }
  void list(const std::string& lines) const { dir.write("list.txt", lines); }
  std::string files() const {
    return "source: '" + dir.path("list.txt") + "' root_folder: '" + dir.path("") + "' ";
  }
  std::string dense(const std::string& fields, const std::string& transform = "") const {
    return "type: 'DenseImageData' top: 'data' top: 'label' transform_param { " + transform +
           " } dense_image_data_param { " + files() + fields + " }";
  }
  std::string seg(const std::string& fields, const std::string& transform = "",
                  const std::string& tops = "top: 'data' top: 'label' top: 'size'") const {
    return "type: 'ImageSegData' " + tops + " transform_param { " + transform +
           " } image_data_param { " + files() +
           (fields.find("label_type") == fields.npos ? " label_type: PIXEL " : " ") + fields + " }";
  }
};

TEST(DenseImageData, ReadsPairsInOrder) {
  const Folder folder;
  const auto source = open_layer(folder.dense("batch_size: 2", "mean_value: 1 scale: 2"));
  EXPECT_EQ(source->top_shapes(), (std::vector<Shape>{Shape{2, 3, 4, 6}, Shape{2, 1, 4, 6}}));
  Tops tops;
  ASSERT_TRUE(fill(*source, 0, 0, &tops).ok());
  for (int n = 0; n < 2; ++n) {
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 6; ++x) {
        const auto at = [&](int c) { return tops[0][size_t(((n * 3 + c) * 4 + y) * 6 + x)]; };
        EXPECT_EQ(at(0), (10 * y - 1) * 2);
        EXPECT_EQ(at(1), (10 * x - 1) * 2);
        EXPECT_EQ(at(2), n * 2);  // 1 and 2, less the mean, twice
        EXPECT_EQ(tops[1][size_t((n * 4 + y) * 6 + x)], float(y + 10 * x)) << "labels are raw";
      }
    }
  }
}

TEST(DenseImageData, CropsAndMirrorsBothAlike) {
  const Folder folder;
  const auto source =
      open_layer(folder.dense("batch_size: 1 crop_height: 2 crop_width: 3 mirror: true"), false);
  EXPECT_EQ(source->top_shapes()[0], (Shape{1, 3, 2, 3}));
  std::set<std::vector<float>> seen;
  for (int step = 0; step < 40; ++step) {
    Tops tops;
    ASSERT_TRUE(fill(*source, 0, step, &tops).ok());
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(tops[1][i], tops[0][i] / 10 + tops[0][6 + i]) << "label and image are of one pixel";
    }
    seen.insert(tops[1]);
  }
  EXPECT_GT(seen.size(), 12U) << "random in TEST, too";
}

TEST(DenseImageData, ResizesLabelsWithoutMixingThem) {
  const Folder folder;
  const auto source = open_layer(folder.dense("batch_size: 1 new_height: 8 new_width: 3"));
  Tops tops;
  ASSERT_TRUE(fill(*source, 0, 0, &tops).ok());
  // PIL: Image.resize((3, 8), NEAREST) takes columns 1, 3, 5; OpenCV, as here, 0, 2, 4.
  EXPECT_THAT(std::vector<float>(tops[1].begin(), tops[1].begin() + 9),
              ElementsAre(0, 20, 40, 0, 20, 40, 1, 21, 41));
}

TEST(ImageSegData, CropsInTheMiddleInTest) {
  const Folder folder;
  const auto source =
      open_layer(folder.seg("batch_size: 1", "crop_height: 2 crop_width: 4 mean_value: 10"), false);
  Tops tops;
  ASSERT_TRUE(fill(*source, 0, 0, &tops).ok());
  EXPECT_THAT(tops[1], ElementsAre(11, 21, 31, 41, 12, 22, 32, 42));
  EXPECT_THAT(tops[2], ElementsAre(2, 4)) << "as much of the image as the top holds";
  EXPECT_EQ(tops[0][0], 0);  // row 1: 10 less the mean
}

TEST(ImageSegData, PadsOnTheRightAndBelow) {
  const Folder folder;
  const auto source = open_layer(folder.seg("batch_size: 1 ignore_label: 99",
                                            "crop_size: 7 mean_value: 5 mean_value: 6 "
                                            "mean_value: 7"),
                                 true);
  Tops tops;
  ASSERT_TRUE(fill(*source, 0, 1, &tops).ok());
  for (size_t y = 0; y < 7; ++y) {
    for (size_t x = 0; x < 7; ++x) {
      const bool inside = y < 4 && x < 6;
      EXPECT_EQ(tops[1][y * 7 + x], inside ? float(y + 10 * x) : 99);
      EXPECT_EQ(tops[0][y * 7 + x], inside ? float(10 * y) - 5 : 0) << "the mean, less the mean";
    }
  }
  EXPECT_THAT(tops[2], ElementsAre(4, 6));
}

TEST(ImageSegData, ScalesByOneOfTheFactors) {
  const Folder folder;
  const auto source = open_layer(
      folder.seg("batch_size: 1", "crop_size: 12 scale_factors: 0.5 scale_factors: 2"), true);
  std::set<std::vector<float>> sizes;
  for (int step = 0; step < 20; ++step) {
    Tops tops;
    ASSERT_TRUE(fill(*source, 0, step, &tops).ok());
    sizes.insert(tops[2]);
    const auto valid = std::ranges::count_if(tops[1], [](float v) { return v != 255; });
    EXPECT_TRUE(valid == 2 * 3 || valid == 8 * 12) << valid;
  }
  EXPECT_EQ(sizes.size(), 1U) << "of the images as they are read";
}

TEST(ImageSegData, LabelsOfAnImageOrOfNone) {
  const Folder folder;
  folder.list("a.png 3\nb.png 4\n");
  Tops tops;
  ASSERT_TRUE(fill(*open_layer(folder.seg("batch_size: 2 label_type: IMAGE")), 0, 0, &tops).ok());
  EXPECT_EQ(tops[1][0], 3);
  EXPECT_EQ(tops[1][47], 4);
  folder.list("a.png\nb.png\n");
  ASSERT_TRUE(fill(*open_layer(folder.seg("batch_size: 2 label_type: NONE", "",
                                          "top: 'data' top: 'label'")),
                   0, 0, &tops)
                  .ok());
  EXPECT_THAT(tops[1], Each(255));
}

TEST(LabelImageSource, ShardsAndShuffling) {
  const Folder folder;
  const auto first_of = [&](int shard) {
    Tops tops;
    const auto source = open_layer(folder.dense("batch_size: 1"), true, 2);
    EXPECT_TRUE(fill(*source, shard, 0, &tops).ok());
    return tops[0][2 * 24];  // red: which image
  };
  EXPECT_EQ(first_of(0), 1);
  EXPECT_EQ(first_of(1), 2);
  std::set<float> firsts;
  const auto shuffled = open_layer(folder.dense("batch_size: 2 shuffle: true"), true);
  for (int epoch = 0; epoch < 16; ++epoch) {
    Tops tops;
    ASSERT_TRUE(fill(*shuffled, 0, epoch, &tops).ok());
    firsts.insert(tops[0][48]);
    EXPECT_EQ(tops[0][48] + tops[0][72 + 48], 3) << "every image once an epoch";
  }
  EXPECT_EQ(firsts.size(), 2U);
}

TEST(LabelImageSource, SaysWhichLineOfWhichFileIsWrong) {
  const Folder folder;
  const auto error = [&](const std::string& lines) {
    folder.list(lines);
    return error_of(folder.dense("batch_size: 2"));
  };
  EXPECT_THAT(error("a.png a_label.png\na.png\n"),
              AllOf(HasSubstr("layer \"L\" (DenseImageData)"), HasSubstr("list.txt:2"),
                    HasSubstr("\"a.png\" is not the path of an image")));
  EXPECT_THAT(error("\n \n"), HasSubstr("the list is empty"));
  EXPECT_THAT(error("a.png a_label.png\n\nno.png a_label.png\n"),
              AllOf(HasSubstr("list.txt:3"), HasSubstr("Could not load no.png")));
  EXPECT_THAT(error("a.png no.png\n"), AllOf(HasSubstr("list.txt:1"), HasSubstr("no.png")));
  folder.add("c", 5, 5, 3);
  EXPECT_THAT(
      error("a.png c_label.png\n"),
      AllOf(HasSubstr("list.txt:1"), HasSubstr("label image is 5 x 5"), HasSubstr("4 x 6")));
  EXPECT_THAT(error("a.png a_label.png\nc.png c_label.png\n"),
              AllOf(HasSubstr("list.txt:2"), HasSubstr("5 x 5"), HasSubstr("new_height")));
  folder.dir.write("bad.png", "\x89PNG\r\n\x1a\nthis is none");
  EXPECT_THAT(error("a.png bad.png\n"), AllOf(HasSubstr("list.txt:1"), HasSubstr("bad.png")));
  EXPECT_THAT(error(std::string("a\0b", 3) + " a_label.png\n"), HasSubstr("list.txt:1"));
}

TEST(LabelImageSource, RefusesWhatCannotBe) {
  const Folder folder;
  EXPECT_THAT(error_of(folder.dense("batch_size: 0")), HasSubstr("batch_size"));
  EXPECT_THAT(error_of(folder.dense("new_height: 3")), HasSubstr("new_width"));
  EXPECT_THAT(error_of(folder.dense("crop_height: 9 crop_width: 9")),
              AllOf(HasSubstr("list.txt:1"), HasSubstr("does not fit")));
  EXPECT_THAT(error_of(folder.seg("", "scale_factors: 2")), HasSubstr("crop_size"));
  EXPECT_THAT(error_of(folder.seg("", "crop_size: 4 scale_factors: -1")), HasSubstr("-1"));
  EXPECT_THAT(error_of(folder.seg("", "mean_file: 'm'")), HasSubstr("mean_value, not mean_file"));
  EXPECT_THAT(error_of(folder.seg("", "distort_param { }")), HasSubstr("remove"));
  EXPECT_THAT(error_of(folder.dense("", "random_aspect_ratio_param { }")), HasSubstr("remove"));
  EXPECT_THAT(error_of(folder.seg("", "mean_value: 1 mean_value: 2")), HasSubstr("2 mean_values"));
  folder.list("a.png x\n");
  EXPECT_THAT(error_of(folder.seg("label_type: IMAGE")),
              AllOf(HasSubstr("list.txt:1"), HasSubstr("\"x\" is no number")));
  folder.list("a.png 256\n");
  EXPECT_THAT(error_of(folder.seg("label_type: IMAGE")), HasSubstr("not in [0, 255]"));
}

}  // namespace
}  // namespace cafetiere
