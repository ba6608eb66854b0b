// SPDX-License-Identifier: Apache-2.0
// Image files through the C interface, to what a net reads.
#include <gmock/gmock.h>

#include <numeric>

#include "cafetiere/c_api.h"
#include "core/data/image.h"

namespace cafetiere {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ImageInterface, DecodesResizesAndTransforms) {
  Image drawn{4, 6, 3, std::vector<uint8_t>(72)};
  std::iota(drawn.pixels.begin(), drawn.pixels.end(), uint8_t{0});
  const std::string file = *encode_image(drawn, "png");
  int32_t sizes[3];
  void* pixels = nullptr;
  ASSERT_EQ(
      cft_image_decode(file.data(), file.size(), "color", &sizes[0], &sizes[1], &sizes[2], &pixels),
      0)
      << cft_last_error();
  EXPECT_THAT(sizes, ElementsAre(4, 6, 3));
  EXPECT_EQ(std::vector<uint8_t>((uint8_t*)pixels, (uint8_t*)pixels + 72), drawn.pixels);
  void* small = nullptr;
  ASSERT_EQ(cft_image_resize(pixels, 72, 4, 6, 3, 2, 3, &small), 0) << cft_last_error();
  EXPECT_EQ(std::vector<uint8_t>((uint8_t*)small, (uint8_t*)small + 18),
            resize_image(drawn, 2, 3).pixels);

  cft_transformer* transformer = nullptr;
  ASSERT_EQ(cft_transformer_create(R"({"param": "crop_size: 2 scale: 2"})", &transformer), 0);
  std::vector<float> out(12);
  ASSERT_EQ(cft_transformer_run(transformer, pixels, 72, 4, 6, 3, 0, out.data(), 12), 0)
      << cft_last_error();
  // The middle begins at row 1, column 2: pixel 8, whose blue is 24.
  EXPECT_EQ(out[0], 48);
  EXPECT_EQ(out[4], 50);
  EXPECT_NE(cft_transformer_run(transformer, pixels, 72, 4, 6, 3, 0, out.data(), 11), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("there is room for 11"));
  EXPECT_NE(cft_transformer_run(transformer, pixels, 71, 4, 6, 3, 0, out.data(), 12), 0);
  cft_transformer_destroy(transformer);
  cft_free(pixels);
  cft_free(small);
}

}  // namespace
}  // namespace cafetiere
