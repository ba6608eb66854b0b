// SPDX-License-Identifier: Apache-2.0
#include "core/data/transformer.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Shape kImage{2, 3, 4};

std::vector<uint8_t> pixels() {
  std::vector<uint8_t> p(24);
  std::iota(p.begin(), p.end(), uint8_t{0});
  return p;
}

Transformer transformer_of(const caffe::TransformationParameter& param, bool train = false,
                           const Shape& image = kImage) {
  auto t = Transformer::make(param, train, image, 5);
  EXPECT_TRUE(t.ok()) << t.status().message();
  return std::move(t).value();
}

std::vector<float> apply(const Transformer& t, const RowPosition& at = {}) {
  std::vector<float> out(static_cast<size_t>(t.out_shape().count()));
  t.apply(pixels(), at, out.data());
  return out;
}

std::string transform_error(const caffe::TransformationParameter& param,
                            const Shape& image = kImage) {
  const auto t = Transformer::make(param, true, image, 5);
  EXPECT_FALSE(t.ok());
  return t.status().message();
}

std::string mean_file(const TempDir& dir, std::vector<int64_t> shape, bool old_form = false) {
  caffe::BlobProto blob;
  int64_t count = 1;
  for (const int64_t d : shape) count *= d;
  if (old_form) {
    blob.set_num(static_cast<int>(shape[0]));
    blob.set_channels(static_cast<int>(shape[1]));
    blob.set_height(static_cast<int>(shape[2]));
    blob.set_width(static_cast<int>(shape[3]));
  } else {
    for (const int64_t d : shape) blob.mutable_shape()->add_dim(d);
  }
  for (int64_t i = 0; i < count; ++i) blob.add_data(static_cast<float>(i) * 0.5f);
  return dir.write("mean.binaryproto", blob.SerializeAsString());
}

TEST(Transformer, WithoutParametersPixelsBecomeFloats) {
  const auto out = apply(transformer_of({}));
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], static_cast<float>(i));
}

TEST(Transformer, SubtractsMeanThenScales) {
  caffe::TransformationParameter param;
  param.set_scale(0.5f);
  param.add_mean_value(1);
  EXPECT_EQ(apply(transformer_of(param))[4], 1.5f);
  param.add_mean_value(2);
  const auto out = apply(transformer_of(param));
  EXPECT_EQ(out[4], 1.5f);
  EXPECT_EQ(out[12], 5.0f);
}

TEST(Transformer, CropsTheCentreInTesting) {
  caffe::TransformationParameter param;
  param.set_crop_size(2);
  // Offsets (3 - 2) / 2 = 0 and (4 - 2) / 2 = 1.
  EXPECT_THAT(apply(transformer_of(param)), ElementsAre(1, 2, 5, 6, 13, 14, 17, 18));
}

TEST(Transformer, MirrorsAboutHalfOfTheImagesAndByPositionAlone) {
  caffe::TransformationParameter param;
  param.set_mirror(true);
  const Transformer t = transformer_of(param), again = transformer_of(param);
  int mirrored = 0;
  for (int64_t row = 0; row < 1000; ++row) {
    const auto out = apply(t, {3, 1, row});
    EXPECT_EQ(out, apply(again, {3, 1, row}));
    if (out[0] == 3) {
      ++mirrored;
      EXPECT_EQ(out[11], 8);
      EXPECT_EQ(out[12], 15);
    } else {
      EXPECT_EQ(out[0], 0);
    }
  }
  EXPECT_NEAR(mirrored, 500, 60);
}

TEST(Transformer, MirrorsWideImagesToo) {
  const Shape wide{1, 2, 700};  // longer than the pieces in which rows are mirrored
  std::vector<uint8_t> image(1400);
  for (size_t i = 0; i < image.size(); ++i) image[i] = uint8_t(i * 7);
  caffe::TransformationParameter param;
  param.set_mirror(true);
  const Transformer t = transformer_of(param, true, wide);
  int mirrored = 0;
  for (int64_t step = 0; step < 20; ++step) {
    std::vector<float> out(1400);
    t.apply(image, {.sub_step = step}, out.data());
    const bool turned = out[0] == float(image[699]);
    mirrored += turned;
    for (size_t i = 0; i < 1400; ++i) {
      const size_t from = turned ? i / 700 * 700 + 699 - i % 700 : i;
      ASSERT_EQ(out[i], float(image[from])) << i;
    }
  }
  EXPECT_GT(mirrored, 0);
  EXPECT_LT(mirrored, 20);
}

TEST(Transformer, CropsEveryWindowInTraining) {
  caffe::TransformationParameter param;
  param.set_crop_size(2);
  const Transformer t = transformer_of(param, true);
  std::set<float> corners;
  for (int64_t q = 0; q < 200; ++q) {
    const auto out = apply(t, {q, 0, 0});
    corners.insert(out[0]);
    EXPECT_EQ(out[3], out[0] + 5);
    EXPECT_EQ(out[4], out[0] + 12);
  }
  EXPECT_THAT(corners, ElementsAre(0, 1, 2, 4, 5, 6));
}

TEST(Transformer, SubtractsTheMeanImageWhereThePixelCameFrom) {
  const TempDir dir;
  for (const bool old_form : {false, true}) {
    caffe::TransformationParameter param;
    param.set_mean_file(mean_file(dir, {1, 2, 3, 4}, old_form));
    param.set_crop_size(2);
    param.set_mirror(true);
    const Transformer t = transformer_of(param, true);
    caffe::TransformationParameter plain = param;
    plain.clear_mean_file();
    const Transformer p = transformer_of(plain, true);
    for (int64_t q = 0; q < 50; ++q) {
      // The mean of pixel v is v / 2, so half of the pixel is left, wherever it went.
      const auto with = apply(t, {q, 0, 0}), without = apply(p, {q, 0, 0});
      for (size_t i = 0; i < with.size(); ++i) EXPECT_EQ(with[i], without[i] * 0.5f);
    }
  }
}

TEST(Transformer, AMeanOfDoublesIsRead) {
  const TempDir dir;
  caffe::BlobProto blob;
  for (const int64_t d : {2, 3, 4}) blob.mutable_shape()->add_dim(d);
  for (int i = 0; i < 24; ++i) blob.add_double_data(i * 0.5);
  caffe::TransformationParameter doubles, floats;
  doubles.set_mean_file(dir.write("doubles.binaryproto", blob.SerializeAsString()));
  floats.set_mean_file(mean_file(dir, {2, 3, 4}));
  EXPECT_EQ(apply(transformer_of(doubles, false)), apply(transformer_of(floats, false)));
}

TEST(Transformer, FloatsNeedNoAlignment) {
  caffe::TransformationParameter param;
  param.set_scale(2);
  const Transformer t = transformer_of(param, false, Shape{3});
  const float values[3] = {1, -2, 3};
  std::vector<std::byte> bytes(1 + sizeof values);
  std::memcpy(bytes.data() + 1, values, sizeof values);
  std::vector<float> out(3);
  t.apply_floats(std::span(bytes).subspan(1), {}, out.data());
  EXPECT_THAT(out, ElementsAre(2, -4, 6));
}

/// Gray pixels, white above the middle.
std::vector<float> half(const std::string& fields, int64_t row, const Shape& image) {
  caffe::TransformationParameter p;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(fields, &p)) << fields;
  const Transformer t = transformer_of(p, true, image);
  EXPECT_EQ(t.out_shape(), (Shape{1, 6, 6}));
  std::vector<uint8_t> bytes(size_t(image.count()), 0);
  std::fill_n(bytes.begin(), bytes.size() / 2, uint8_t{255});
  std::vector<float> out(36);
  t.apply(bytes, image, {.row = row}, out.data());
  return out;
}

TEST(Transformer, GivesIntelsImagesARandomSize) {
  const std::string part =
      "crop_size: 6 random_aspect_ratio_param { resize_param { interp_mode: NEAREST } }";
  const std::string side = "crop_size: 6 random_resize_param { min_size: 6 max_size: 12 }";
  for (const std::string& fields : {part, side}) {
    const Shape image{1, 16, fields == part ? 16 : 8};
    std::set<std::vector<float>> seen;
    for (int64_t row = 0; row < 40; ++row) {
      const std::vector<float> out = half(fields, row, image);
      EXPECT_EQ(out, half(fields, row, image)) << "the same at the same place";
      for (size_t i = 0; i < 30; ++i) EXPECT_GE(out[i], out[i + 6]) << "white remains above";
      if (fields == part) {  // 11 or more of 16 rows: the middle is among them
        EXPECT_EQ(out.front(), 255);
        EXPECT_EQ(out.back(), 0);
      }
      seen.insert(out);
    }
    EXPECT_GT(seen.size(), 2U) << fields;
  }
}

TEST(Transformer, RefusesRandomSizesThatCannotBe) {
  const auto error = [](const std::string& fields, const Shape& image = {1, 16, 8}) {
    caffe::TransformationParameter p;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(fields, &p)) << fields;
    return transform_error(p, image);
  };
  EXPECT_THAT(error("random_resize_param { min_size: 8 }"), HasSubstr("crop_size"));
  EXPECT_THAT(error("crop_size: 6 random_resize_param { min_size: 4 }"), HasSubstr("min_size 4"));
  EXPECT_THAT(error("crop_size: 6 random_resize_param { min_size: 9 max_size: 8 }"),
              HasSubstr("max_size 8"));
  EXPECT_THAT(error("crop_size: 9 random_resize_param { }"), HasSubstr("crop_size 9"));
  EXPECT_THAT(error("crop_size: 6 random_resize_param { } random_aspect_ratio_param { }"),
              HasSubstr("keep one"));
  EXPECT_THAT(error("crop_size: 6 random_aspect_ratio_param { aspect_ratio_change: 2 }"),
              HasSubstr("aspect_ratio_change"));
  EXPECT_THAT(error("crop_size: 6 random_resize_param { max_size: 8000 }", {1, 9000, 6}),
              HasSubstr("random size"));
}

TEST(Transformer, RefusesWhatDoesNotFit) {
  caffe::TransformationParameter param;
  param.set_crop_size(4);
  EXPECT_THAT(transform_error(param), HasSubstr("crop_size 4"));
  EXPECT_THAT(transform_error(param, Shape{7}), HasSubstr("need images"));
  param.Clear();
  param.mutable_distort_param()->set_hue_prob(0.5);
  EXPECT_THAT(transform_error(param), HasSubstr("distort_param of SSD"));
  param.Clear();
  param.add_scale_factors(0.5);
  EXPECT_THAT(transform_error(param), HasSubstr("scale_factors of SSD and DeepLab"));
  param.Clear();
  for (int i = 0; i < 3; ++i) param.add_mean_value(1);
  EXPECT_THAT(transform_error(param), HasSubstr("3 mean_values for 2 channels"));
  param.set_mean_file("x");
  EXPECT_THAT(transform_error(param), HasSubstr("both given"));
  param.clear_mean_value();
  EXPECT_THAT(transform_error(param), HasSubstr("mean_file"));
  const TempDir dir;
  param.set_mean_file(mean_file(dir, {2, 4, 3}));
  EXPECT_THAT(transform_error(param), HasSubstr("holds 2 x 4 x 3"));
  param.set_mean_file(dir.write("junk", "\xff\xff\xff"));
  EXPECT_THAT(transform_error(param), HasSubstr("not a binary BlobProto"));
  param.Clear();
  param.set_force_color(true);
  param.set_force_gray(true);
  EXPECT_THAT(transform_error(param), HasSubstr("force_gray"));
}

}  // namespace
}  // namespace cafetiere
