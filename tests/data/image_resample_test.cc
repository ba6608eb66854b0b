// SPDX-License-Identifier: Apache-2.0
#include "core/data/image_resample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/data/image_distort.h"

namespace cafetiere {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Resize = caffe::ResizeParameter;

/// 5 x 7 gray pixels: (37 x + 91 y) mod 256.
Image gray() {
  Image image{5, 7, 1, {}};
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 7; ++x) image.pixels.push_back(uint8_t((37 * x + 91 * y) % 256));
  }
  return image;
}

void expect_near(const std::vector<uint8_t>& found, const std::vector<int>& expected, int most,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_LE(std::abs(int(found[i]) - expected[i]), most) << what << " at " << i;
  }
}

// cv2.resize of OpenCV 5.0: to 3 x 4 and to 6 x 9. Its weights are rounded to 11 bits.
TEST(Resample, IsNearToOpenCv) {
  const auto near = [](Resize::InterpMode mode, const std::vector<int>& small,
                       const std::vector<int>& large) {
    const std::string name = Resize::InterpMode_Name(mode);
    const int most = mode == Resize::NEAREST ? 0 : 1;
    expect_near(resample(gray(), 3, 4, mode).pixels, small, most, name + " smaller");
    expect_near(resample(gray(), 6, 9, mode).pixels, large, most, name + " larger");
  };
  near(Resize::NEAREST, {0, 37, 111, 185, 91, 128, 202, 20, 17, 54, 128, 202},
       {0,  0,  37,  74,  111, 111, 148, 185, 222, 0,   0,   37,  74,  111, 111, 148, 185, 222,
        91, 91, 128, 165, 202, 202, 239, 20,  57,  182, 182, 219, 0,   37,  37,  74,  111, 148,
        17, 17, 54,  91,  128, 128, 165, 202, 239, 108, 108, 145, 182, 219, 219, 0,   37,  74});
  near(Resize::AREA, {52, 116, 164, 140, 147, 78, 113, 132, 87, 151, 105, 124},
       {0,   26,  53,  79,  111, 143, 169, 196, 222, 73,  99,  126, 152, 184, 215, 125, 63,  90,
        145, 172, 133, 71,  103, 134, 103, 85,  112, 116, 142, 103, 42,  73,  105, 131, 158, 184,
        35,  61,  88,  114, 146, 134, 153, 180, 206, 108, 134, 161, 187, 219, 31,  21,  48,  74});
  near(Resize::CUBIC, {34, 119, 186, 148, 210, 0, 68, 137, 80, 167, 69, 120},
       {0,   16,  49,  79,  106, 132, 171, 211, 233, 58,  79,  127, 175, 199, 248, 129, 39,  87,
        167, 211, 145, 56,  101, 141, 89,  54,  91,  115, 159, 93,  4,   50,  89,  143, 189, 210,
        18,  38,  86,  136, 158, 139, 152, 190, 214, 110, 134, 167, 205, 224, 35,  0,   44,  68});
  near(Resize::LANCZOS4, {21, 124, 196, 147, 217, 0, 73, 137, 72, 180, 78, 123},
       {0,   21,  50,  74,  103, 130, 169, 211, 233, 52,  70,  127, 172, 203, 255, 135, 38,  96,
        174, 225, 155, 55,  106, 143, 73,  37,  79,  107, 158, 88,  0,   39,  89,  148, 204, 223,
        15,  34,  86,  144, 166, 150, 153, 186, 209, 114, 143, 156, 207, 221, 32,  0,   55,  64});
}

Resizer resizer(Resize::PadMode pad, bool fits = true) {
  Resize p;
  p.set_height(4), p.set_width(4), p.set_pad_mode(pad);
  if (fits) p.set_resize_mode(Resize::FIT_LARGE_SIZE_AND_PAD);
  p.add_pad_value(9);
  return *Resizer::make(p);
}

// 2 x 4 pixels lie in rows 1 and 2 of 4 x 4.
TEST(Resizer, PadsAboveAndBelowAndMovesTheObjects) {
  const Image wide{2, 4, 1, {1, 2, 3, 4, 5, 6, 7, 8}};
  Draws draws(1, {});
  const auto padded = [&](Resize::PadMode mode) {
    std::vector<Box> boxes = {{0, 0, 1, 1}, {0.25F, 0.5F, 0.5F, 1}};
    const Image image = resizer(mode).apply(wide, draws, &boxes);
    EXPECT_FLOAT_EQ(boxes[0].y1, 0.25F);
    EXPECT_FLOAT_EQ(boxes[0].y2, 0.75F);
    EXPECT_FLOAT_EQ(boxes[0].x2, 1);
    EXPECT_FLOAT_EQ(boxes[1].y1, 0.5F);
    EXPECT_FLOAT_EQ(boxes[1].x1, 0.25F);
    return image.pixels;
  };
  EXPECT_THAT(padded(Resize::CONSTANT),
              ElementsAre(9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9));
  EXPECT_THAT(padded(Resize::MIRRORED),
              ElementsAre(5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4));
  EXPECT_THAT(padded(Resize::REPEAT_NEAREST),
              ElementsAre(1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8));
}

TEST(Resizer, WarpLeavesTheObjectsWhereTheyAre) {
  std::vector<Box> boxes = {{0.25F, 0.5F, 0.5F, 1}};
  Draws draws(1, {});
  const Image image = resizer(Resize::CONSTANT, false).apply(gray(), draws, &boxes);
  EXPECT_EQ(image.shape(), (Shape{1, 4, 4}));
  EXPECT_EQ(boxes[0].y1, 0.5F);
}

TEST(Resizer, Refusals) {
  Resize p;
  EXPECT_THAT(Resizer::make(p).status().message(), HasSubstr("height 0 and width 0"));
  p.set_height(4), p.set_width(4), p.set_resize_mode(Resize::FIT_SMALL_SIZE);
  EXPECT_THAT(Resizer::make(p).status().message(), HasSubstr("FIT_SMALL_SIZE"));
}

// cv2.cvtColor to HSV of bytes, a step there, and back (OpenCV 5.0).
TEST(Distort, TurnsHuesAsOpenCvDoes) {
  const Image pixels{
      1, 6, 3, {10, 200, 30, 250, 20, 90, 5, 6, 7, 128, 128, 128, 0, 0, 255, 255, 255, 0}};
  const auto changed = [&](float hue, float saturation) {
    Image image = pixels;
    change_hsv(&image, hue, saturation);
    return image.pixels;
  };
  expect_near(changed(18, 1),
              {105, 200, 10, 250, 20, 227, 5, 7, 7, 128, 128, 128, 0, 153, 255, 255, 102, 0}, 1,
              "hue + 18");
  expect_near(changed(-30, 1),
              {10, 181, 200, 250, 181, 20, 5, 5, 7, 128, 128, 128, 0, 0, 255, 0, 255, 0}, 1,
              "hue - 30");
  expect_near(changed(0, 0.5F),
              {105, 200, 115, 250, 134, 169, 6, 7, 7, 128, 128, 128, 127, 127, 255, 255, 255, 127},
              1, "half the saturation");
  expect_near(changed(0, 1.5F),
              {0, 200, 20, 250, 0, 75, 4, 5, 7, 128, 128, 128, 0, 0, 255, 255, 255, 0}, 1,
              "more saturation");
}

TEST(Distort, SaturatesAndRepeats) {
  caffe::DistortionParameter p;
  p.set_brightness_prob(1), p.set_brightness_delta(200);
  p.set_contrast_prob(0.5F), p.set_contrast_lower(0.5F), p.set_contrast_upper(1.5F);
  p.set_random_order_prob(1);
  const Image from{1, 2, 3, {0, 100, 250, 7, 8, 9}};
  std::vector<std::vector<uint8_t>> seen;
  for (int row = 0; row < 16; ++row) {
    Image image = from, again = from;
    Draws draws(3, {.row = row}), same(3, {.row = row});
    distort(p, draws, &image);
    distort(p, same, &again);
    EXPECT_EQ(image.pixels, again.pixels);
    seen.push_back(image.pixels);
  }
  std::ranges::sort(seen);
  EXPECT_GT(std::ranges::unique(seen).begin() - seen.begin(), 10) << "different from row to row";
  p.set_contrast_lower(2);
  EXPECT_THAT(check_distortion(p).message(), HasSubstr("contrast"));
}

}  // namespace
}  // namespace cafetiere
