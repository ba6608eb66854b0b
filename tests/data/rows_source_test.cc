// SPDX-License-Identifier: Apache-2.0
#include "core/data/rows_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/data/image.h"
#include "core/data/row_table.h"
#include "tests/data/rows.h"

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::string_view kSchema =
    R"({"columns": [{"name": "key", "type": "i64"}, {"name": "image", "type": "u8"},
                    {"name": "x", "type": "f64"}, {"name": "label", "type": "i32"},
                    {"name": "text", "type": "string"}], "id": "key"})";

/// Row i of a test table: key i, image [i, 2i, 3i, 4i], x [i + 0.5], label i % 3, text "i".
RowBytes& add_row(RowBytes& rows, int i) {
  const auto b = static_cast<uint8_t>(i);
  return rows.add(int64_t{i})
      .add_all<uint8_t>({b, uint8_t(2 * b), uint8_t(3 * b), uint8_t(4 * b)})
      .add(i + 0.5)
      .add(int32_t{i % 3})
      .text(std::to_string(i));
}

/// All rows in two shards, both owned: even rows in shard 0, odd ones in shard 1.
std::shared_ptr<const ShardStore> store_of(int64_t count, const RowBytes& bytes) {
  RowTable table(*RowSchema::parse(kSchema));
  const Status status = table.append(count, bytes.span());
  EXPECT_TRUE(status.ok()) << status.message();
  auto store = std::make_shared<ShardStore>(table.schema(), 2, ShardRange{0, 2}, count);
  for (int64_t i = 0; i < count; ++i) store->place(i, table.row(i));
  store->adopt(table.take_store());
  return store;
}

std::shared_ptr<const ShardStore> good_store(int count) {
  RowBytes bytes;
  for (int i = 0; i < count; ++i) add_row(bytes, i);
  return store_of(count, bytes);
}

RowsInput image() {
  RowsInput input{"data", "image", Shape{1, 2, 2}, 0, caffe::TransformationParameter()};
  input.transform->set_scale(0.5f);
  return input;
}
const RowsInput kLabel{"label", "label", Shape{}, 3, std::nullopt};
const RowsInput kNumber{"x", "x", Shape{1}, 0, std::nullopt};
const RowsInput kText{"t", "text", Shape{1}, 0, std::nullopt};

std::unique_ptr<RowsSource> source_of(std::shared_ptr<const ShardStore> store,
                                      const std::vector<RowsInput>& inputs) {
  auto source = RowsSource::make(std::move(store), inputs, 4, true, 9);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return std::move(source).value();
}

TEST(RowsSource, FillsEveryTopFromItsColumn) {
  const auto source = source_of(good_store(11), {image(), kLabel, kNumber, kText});
  EXPECT_EQ(source->top_shapes(),
            (std::vector<Shape>{Shape{4, 1, 2, 2}, Shape{4}, Shape{4, 1}, Shape{4, 1}}));
  EXPECT_TRUE(source->validate().ok());
  std::vector<float> data(16), label(4), x(4), text(4);
  float* const tops[] = {data.data(), label.data(), x.data(), text.data()};
  std::map<float, int> seen;
  for (int64_t q = 0; q < source->sampler().batches_per_epoch(); ++q) {
    for (int shard = 0; shard < 2; ++shard) {
      ASSERT_TRUE(source->fill(shard, q, tops).ok());
      for (int64_t i = 0; i < source->rows(shard, q); ++i) {
        const float row = text[static_cast<size_t>(i)];
        ++seen[row];
        EXPECT_EQ(static_cast<int>(row) % 2, shard);
        EXPECT_EQ(label[static_cast<size_t>(i)], std::fmod(row, 3.0f));
        EXPECT_EQ(x[static_cast<size_t>(i)], row + 0.5f);
        EXPECT_EQ(data[static_cast<size_t>(4 * i + 3)], row * 2);
      }
    }
  }
  EXPECT_EQ(seen.size(), 11u);
  for (const auto& [row, times] : seen) EXPECT_EQ(times, 1) << row;
}

TEST(RowsSource, ATopWithoutAColumnReadsAsZeros) {
  const auto source = source_of(good_store(3), {{"label", "", Shape{}, 3, std::nullopt}});
  EXPECT_TRUE(source->validate().ok());
  std::vector<float> label(4, 7.f);
  float* const tops[] = {label.data()};
  ASSERT_TRUE(source->fill(0, 0, tops).ok());
  EXPECT_EQ(label, (std::vector<float>{0, 0, 7, 7}));
}

TEST(RowsSource, TheSameBatchWhoeverAsks) {
  const auto a = source_of(good_store(30), {kText}), b = source_of(good_store(30), {kText});
  std::vector<float> first(4), second(4);
  float* const to_first[] = {first.data()};
  float* const to_second[] = {second.data()};
  ASSERT_TRUE(a->fill(0, 0, to_first).ok());
  ASSERT_TRUE(a->fill(1, 9, to_first).ok());
  ASSERT_TRUE(b->fill(1, 9, to_second).ok());
  EXPECT_EQ(first, second);
}

TEST(RowsSource, RefusesInputsThatDoNotFitTheTable) {
  const auto error = [](const RowsInput& input) {
    return RowsSource::make(good_store(3), {input}, 4, true, 9).status().message();
  };
  EXPECT_THAT(error({"data", "picture", Shape{1}, 0, std::nullopt}),
              AllOf(HasSubstr("top \"data\""), HasSubstr("no column \"picture\""),
                    HasSubstr("key, image, x, label, text")));
  RowsInput crop = image();
  crop.transform->set_crop_size(3);
  EXPECT_THAT(error(crop), AllOf(HasSubstr("top \"data\""), HasSubstr("crop_size 3")));
  RowsInput resized{"data", "x", Shape{1, 9, 9}, 0, caffe::TransformationParameter()};
  resized.transform->set_crop_size(8);
  resized.transform->mutable_random_resize_param();
  EXPECT_THAT(error(resized), AllOf(HasSubstr("top \"data\""), HasSubstr("only images of bytes")));
  EXPECT_THAT(RowsSource::make(good_store(0), {kLabel}, 4, true, 9).status().message(),
              HasSubstr("no rows"));
}

/// Rows 0 to 4, then `bad`; both the first pass and the batch must refuse it alike.
void expect_refused(const RowsInput& input, const RowBytes& bad,
                    const testing::Matcher<const std::string&>& message) {
  RowBytes bytes;
  for (int i = 0; i < 5; ++i) add_row(bytes, i);
  const auto offset = bytes.span().size();
  std::vector<uint8_t> all(offset + bad.span().size());
  std::memcpy(all.data(), bytes.span().data(), offset);
  std::memcpy(all.data() + offset, bad.span().data(), bad.span().size());
  RowTable table(*RowSchema::parse(kSchema));
  ASSERT_TRUE(table.append(6, std::as_bytes(std::span(all))).ok());
  auto store = std::make_shared<ShardStore>(table.schema(), 1, ShardRange{0, 1}, 6);
  for (int64_t i = 0; i < 6; ++i) store->place(i, table.row(i));
  store->adopt(table.take_store());
  auto source = RowsSource::make(store, {input}, 6, true, 9);
  ASSERT_TRUE(source.ok()) << source.status().message();
  const Status status = (*source)->validate();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.message(), message);
}

TEST(RowsSource, NamesTheBadRow) {
  RowBytes few;
  few.add(int64_t{77}).add_all<uint8_t>({1, 2, 3}).add(0.5).add(int32_t{0}).text("0");
  expect_refused(
      image(), few,
      AllOf(HasSubstr("column \"image\", id 77"), HasSubstr("3 values"), HasSubstr("takes 4")));
  RowBytes label;
  label.add(int64_t{78}).add_all<uint8_t>({1, 2, 3, 4}).add(0.5).add(int32_t{3}).text("abc");
  expect_refused(kLabel, label,
                 AllOf(HasSubstr("column \"label\", id 78"), HasSubstr("label is 3"),
                       HasSubstr("from 0 to 2")));
  expect_refused(kText, label, AllOf(HasSubstr("id 78"), HasSubstr("\"abc\" is not a number")));
  RowsInput half{"label", "x", Shape{}, 3, std::nullopt};
  expect_refused(half, label, HasSubstr("label is 0.5"));
  RowBytes nan;
  nan.add(int64_t{79}).add_all<uint8_t>({1}).add(std::nan("")).add(int32_t{-1}).text(" 1 ");
  expect_refused(kNumber, nan, AllOf(HasSubstr("id 79"), HasSubstr("value 0 is nan")));
  expect_refused(kLabel, nan, HasSubstr("label is -1"));
  RowBytes infinite;
  infinite.add(int64_t{80}).add_all<uint8_t>({}).add(HUGE_VAL).add(int32_t{0}).text("");
  expect_refused(kNumber, infinite, HasSubstr("value 0 is inf"));
  expect_refused(kText, infinite, HasSubstr("\"\" is not a number"));
}

TEST(RowsSource, TextBelowWhatAFloatHoldsIsZeroAsInColumnsOfNumbers) {
  RowBytes bytes;
  bytes.add(int64_t{5}).add_all<uint8_t>({1}).add(1e-50).add(int32_t{0}).text("1e-50");
  const auto source = source_of(store_of(1, bytes), {kText, kNumber});
  std::vector<float> text(4, 7), number(4, 7);
  float* const tops[] = {text.data(), number.data()};
  const Status status = source->fill(0, 0, tops);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(text, number);
  EXPECT_EQ(text[0], 0);
}

TEST(RowsSource, FillRefusesABadRowToo) {
  RowBytes bytes;
  bytes.add(int64_t{5}).add_all<uint8_t>({1}).add(0.5).add(int32_t{9}).text("x");
  const auto source = source_of(store_of(1, bytes), {image()});
  std::vector<float> data(16);
  float* const tops[] = {data.data()};
  EXPECT_THAT(source->fill(0, 0, tops).message(), HasSubstr("id 5"));
}

/// A table of one column of images.
std::shared_ptr<const ShardStore> images(const std::vector<std::string>& files, bool resize) {
  const std::string schema = R"({"columns": [{"name": "image", "type": "u8", "resize": )" +
                             std::string(resize ? "true" : "false") + "}]}";
  RowTable table(*RowSchema::parse(schema));
  RowBytes bytes;
  for (const std::string& file : files) bytes.text(file);
  const auto count = static_cast<int64_t>(files.size());
  EXPECT_TRUE(table.append(count, bytes.span()).ok());
  auto store = std::make_shared<ShardStore>(table.schema(), 1, ShardRange{0, 1}, count);
  for (int64_t i = 0; i < count; ++i) store->place(i, table.row(i));
  store->adopt(table.take_store());
  return store;
}

std::string png_of(int height, int width, uint8_t value) {
  return *encode_image(
      Image{height, width, 1, std::vector<uint8_t>(size_t(height) * size_t(width), value)}, "png");
}

RowsInput encoded(const Shape& shape) {
  return {.top = "data",
          .column = "image",
          .row_shape = shape,
          .transform = caffe::TransformationParameter(),
          .encoded = true};
}

TEST(RowsSource, DecodesImages) {
  const auto source =
      source_of(images({png_of(2, 3, 7), png_of(2, 3, 7)}, false), {encoded(Shape{3, 2, 3})});
  EXPECT_EQ(source->top_shapes()[0], (Shape{4, 3, 2, 3}));
  EXPECT_TRUE(source->validate().ok());
  std::vector<float> data(72, 0.f);
  float* const tops[] = {data.data()};
  ASSERT_TRUE(source->fill(0, 0, tops).ok());
  EXPECT_EQ(data[0], 7);
  EXPECT_EQ(data[35], 7);
  EXPECT_EQ(data[36], 0);

  const auto resized = source_of(images({png_of(9, 5, 8)}, true), {encoded(Shape{1, 2, 3})});
  ASSERT_TRUE(resized->fill(0, 0, tops).ok());
  EXPECT_EQ(data[5], 8);
}

TEST(RowsSource, NamesTheBadImage) {
  float data[64];
  float* const tops[] = {data};
  const auto error = [&](const std::string& file) {
    return source_of(images({file}, false), {encoded(Shape{1, 2, 3})})->fill(0, 0, tops).message();
  };
  EXPECT_THAT(error(png_of(3, 3, 1)),
              AllOf(HasSubstr("column \"image\""), HasSubstr("hash 0x"), HasSubstr("1 x 3 x 3")));
  EXPECT_THAT(error(png_of(2, 3, 1).substr(0, 50)), HasSubstr("PNG: the file ends too early"));
  EXPECT_THAT(error("hello"), HasSubstr("no JPEG, PNG or WebP"));
  EXPECT_THAT(source_of(images({"hello"}, false), {encoded(Shape{1, 2, 3})})->validate().message(),
              HasSubstr("5 bytes of type u8"));
  RowsInput raw = encoded(Shape{1, 2, 3});
  raw.encoded = false;
  EXPECT_THAT(source_of(images({png_of(2, 3, 1)}, false), {raw})->validate().message(),
              AllOf(HasSubstr("a PNG file"), HasSubstr("image_encoded")));
  EXPECT_THAT(
      RowsSource::make(images({"x"}, false), {encoded(Shape{6})}, 4, true, 9).status().message(),
      HasSubstr("channels, height and width"));
}

}  // namespace
}  // namespace cafetiere
