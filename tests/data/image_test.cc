// SPDX-License-Identifier: Apache-2.0
#include "core/data/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Le;

/// Pixel i is 37 i + 11 i^2 modulo 256.
Image formula(int height, int width, int channels) {
  Image image{height, width, channels, {}};
  for (int i = 0; i < height * width * channels; ++i) {
    image.pixels.push_back(static_cast<uint8_t>(37 * i + 11 * i * i));
  }
  return image;
}

/// Slow changes of colour, which JPEG keeps well.
Image smooth(int height, int width, int channels) {
  Image image{height, width, channels, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        image.pixels.push_back(static_cast<uint8_t>(40 + 3 * y + 2 * x + 20 * c));
      }
    }
  }
  return image;
}

std::string encoded(const Image& image, std::string_view format) {
  auto bytes = encode_image(image, format);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return *bytes;
}

Image decoded(const std::string& bytes, ImageColor color) {
  auto image = decode_image(bytes, color);
  EXPECT_TRUE(image.ok()) << image.status().message();
  return image.ok() ? *image : Image();
}

/// A lossless WebP image of 2 x 1 pixels, red and blue.
constexpr uint8_t kWebpBytes[] = {0x52, 0x49, 0x46, 0x46, 0x1e, 0x00, 0x00, 0x00, 0x57, 0x45,
                                  0x42, 0x50, 0x56, 0x50, 0x38, 0x4c, 0x11, 0x00, 0x00, 0x00,
                                  0x2f, 0x01, 0x00, 0x00, 0x00, 0x0f, 0x10, 0xf3, 0xbf, 0xff,
                                  0xf3, 0x1f, 0x0e, 0x32, 0xa2, 0xff, 0x01, 0x00};
const std::string kWebp(reinterpret_cast<const char*>(kWebpBytes), sizeof kWebpBytes);

// The figures are those of OpenCV 4.6's cv::resize.
TEST(Image, ResizesAsTheReferenceDoes) {
  EXPECT_THAT(resize_image(formula(5, 7, 1), 3, 4).pixels,
              ElementsAre(47, 153, 124, 132, 152, 98, 145, 37, 183, 24, 147, 136));
  EXPECT_THAT(resize_image(formula(5, 7, 1), 7, 3).pixels,
              ElementsAre(32, 210, 171, 108, 199, 170, 169, 199, 135, 181, 224, 51, 231, 104, 126,
                          194, 117, 152, 118, 198, 146));
  EXPECT_THAT(resize_image(formula(4, 6, 1), 2, 3).pixels,
              ElementsAre(46, 190, 166, 118, 150, 142));
  EXPECT_THAT(resize_image(formula(2, 2, 3), 3, 3).pixels,
              ElementsAre(0, 48, 118, 105, 58, 161, 210, 68, 204, 53, 39, 175, 129, 84, 189, 205,
                          129, 203, 106, 30, 232, 153, 110, 217, 200, 190, 202));
}

/// The definition, a value at a time: columns first, in 1/2^11, then rows, each with OpenCV's rounding.
uint8_t interpolated(const Image& image, int height, int width, int y, int x, int c) {
  const auto place = [](int from, int to, int i, int* first) {
    const float at = float((i + 0.5) * (1.0 / (double(to) / from)) - 0.5);
    *first = int(std::floor(at));
    return at - float(*first);
  };
  const auto fixed = [](float weight) { return int(std::lrintf(weight * 2048)); };
  int left = 0, top = 0;
  float across = place(image.width, width, x, &left);
  const float down = place(image.height, height, y, &top);
  if (left < 0 || left >= image.width - 1) left = std::clamp(left, 0, image.width - 1), across = 0;
  const auto row = [&](int at) {
    const uint8_t* pixels =
        &image.pixels[size_t(std::clamp(at, 0, image.height - 1) * image.width * image.channels)];
    const int right = std::min(left + 1, image.width - 1);
    return pixels[left * image.channels + c] * fixed(1 - across) +
           pixels[right * image.channels + c] * fixed(across);
  };
  const int upper = (fixed(1 - down) * (row(top) >> 4)) >> 16;
  const int lower = (fixed(down) * (row(top + 1) >> 4)) >> 16;
  return uint8_t((upper + lower + 2) >> 2);
}

TEST(Image, ResizingByVectorsIsTheDefinition) {
  std::mt19937 random(3);
  const auto side = [&] { return 1 + int(random() % 40); };
  for (int i = 0; i < 200; ++i) {
    Image image{side(), side(), 1 + i % 5, {}};
    for (int p = 0; p < image.height * image.width * image.channels; ++p) {
      image.pixels.push_back(uint8_t(i % 3 == 0 ? 255 : random()));
    }
    const int height = side(), width = side();
    if (image.height == 2 * height && image.width == 2 * width) continue;  // a mean of four
    const Image out = resize_image(image, height, width);
    size_t at = 0;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < image.channels; ++c, ++at) {
          ASSERT_EQ(out.pixels[at], interpolated(image, height, width, y, x, c))
              << image.shape().str() << " to " << height << " x " << width << " at " << at;
        }
      }
    }
  }
}

TEST(Image, PlanesHoldOneChannelEach) {
  for (int channels : {1, 2, 3, 4, 5}) {
    const Image image = formula(7, 33, channels);
    std::vector<uint8_t> planes(image.pixels.size());
    to_planes(image, planes.data());
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      const size_t c = i % size_t(channels), pixel = i / size_t(channels);
      ASSERT_EQ(planes[c * 7 * 33 + pixel], image.pixels[i]) << channels << " channels, " << i;
    }
  }
}

TEST(Image, ResizingToTheSameSizeKeepsThePixels) {
  EXPECT_EQ(resize_image(formula(5, 7, 3), 5, 7).pixels, formula(5, 7, 3).pixels);
  EXPECT_THAT(resize_image(Image{1, 1, 1, {77}}, 3, 2).pixels, Each(77));
}

TEST(Image, PngKeepsEveryPixel) {
  for (const int channels : {1, 3, 4}) {
    const Image image = formula(9, 5, channels);
    const Image back = decoded(encoded(image, "png"), ImageColor::kStored);
    EXPECT_EQ(back.shape(), image.shape());
    EXPECT_EQ(back.pixels, image.pixels);
  }
}

TEST(Image, JpegKeepsColoursInTheirOrder) {
  for (const int channels : {1, 3}) {
    const Image image = smooth(32, 24, channels);
    const Image back = decoded(encoded(image, "jpg"), ImageColor::kStored);
    ASSERT_EQ(back.shape(), image.shape());
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      EXPECT_NEAR(back.pixels[i], image.pixels[i], 6) << i;
    }
  }
}

TEST(Image, ConvertsBetweenGrayAndColour) {
  // Blue, green and red alone weigh 29, 149 and 76 of 255.
  const Image primary{1, 3, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255}};
  EXPECT_THAT(decoded(encoded(primary, "png"), ImageColor::kGray).pixels, ElementsAre(29, 149, 76));
  const Image gray{1, 2, 1, {10, 200}};
  for (const char* format : {"png", "jpg"}) {
    EXPECT_EQ(decoded(encoded(gray, format), ImageColor::kColor).channels, 3);
    EXPECT_EQ(decoded(encoded(gray, format), ImageColor::kStored).channels, 1);
  }
  EXPECT_THAT(decoded(encoded(gray, "png"), ImageColor::kColor).pixels,
              ElementsAre(10, 10, 10, 200, 200, 200));
  EXPECT_EQ(decoded(encoded(formula(4, 4, 4), "png"), ImageColor::kColor).channels, 3);
}

TEST(Image, ReadsWebp) {
  EXPECT_THAT(decoded(kWebp, ImageColor::kStored).pixels, ElementsAre(0, 0, 255, 255, 0, 0));
  EXPECT_THAT(decoded(kWebp, ImageColor::kGray).pixels, ElementsAre(76, 29));
}

TEST(Image, PlanesHoldChannelAfterChannel) {
  const Image image{1, 2, 3, {1, 2, 3, 4, 5, 6}};
  std::vector<uint8_t> planes(6);
  to_planes(image, planes.data());
  EXPECT_THAT(planes, ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Image, RefusesWhatIsNoImage) {
  const auto error = [](const std::string& bytes) {
    return decode_image(bytes, ImageColor::kColor).status().message();
  };
  EXPECT_THAT(error(""), HasSubstr("not a JPEG, PNG or WebP"));
  EXPECT_THAT(error("GIF89a"), HasSubstr("not a JPEG, PNG or WebP"));
  EXPECT_THAT(error(encoded(smooth(40, 40, 3), "jpg").substr(0, 500)),
              HasSubstr("JPEG: Premature"));
  EXPECT_THAT(error(encoded(formula(40, 40, 3), "png").substr(0, 500)),
              HasSubstr("PNG: the file ends too early"));
  EXPECT_THAT(error(kWebp.substr(0, 30)), HasSubstr("WebP"));
  EXPECT_THAT(encode_image(formula(2, 2, 1), "gif").status().message(),
              HasSubstr("jpg, jpeg or png"));
  const TempDir dir;
  const auto in_file = [&](const std::string& path) {
    return read_image(path, ImageColor::kColor).status().message();
  };
  EXPECT_THAT(in_file(dir.path("none.jpg")), HasSubstr("File not found"));
  EXPECT_THAT(in_file(dir.write("text.jpg", "hello")),
              AllOf(HasSubstr("text.jpg"), HasSubstr("5")));
}

TEST(Image, RefusesHugeSizesBeforeTakingMemory) {
  std::string jpeg = encoded(smooth(8, 8, 1), "jpg");
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, jpeg.npos);
  jpeg.replace(frame + 5, 4, "\xff\x01\xff\x01");  // height and width
  EXPECT_THAT(decode_image(jpeg, ImageColor::kColor).status().message(),
              HasSubstr("bytes cannot be an image of 65281 x 65281 pixels"));
  jpeg.resize(size_t{9} << 20);  // now it could
  EXPECT_THAT(decode_image(jpeg, ImageColor::kColor).status().message(),
              AllOf(HasSubstr("65281 x 65281"), HasSubstr("are supported")));
}

// Whatever the bytes are: an image or an error, and within the memory that the header may ask for.
TEST(Image, HostileBytesNeitherCrashNorHang) {
  std::mt19937 random(5);
  const std::string seeds[] = {encoded(smooth(33, 17, 3), "jpg"), encoded(formula(13, 9, 4), "png"),
                               kWebp};
  int images = 0;
  for (const std::string& seed : seeds) {
    for (int i = 0; i < 400; ++i) {
      std::string bytes = seed.substr(0, i % 4 == 0 ? random() % seed.size() : seed.npos);
      for (unsigned k = random() % 8; k > 0 && bytes.size() > 16; --k) {
        bytes[12 + random() % (bytes.size() - 12)] = static_cast<char>(random());
      }
      const auto color = static_cast<ImageColor>(random() % 3);
      const auto image = decode_image(bytes, color);
      if (!image.ok()) continue;
      ++images;
      EXPECT_EQ(image->pixels.size(), static_cast<size_t>(image->shape().count()));
    }
  }
  EXPECT_GT(images, 0);
}

}  // namespace
}  // namespace cafetiere
