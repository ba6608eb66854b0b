// SPDX-License-Identifier: Apache-2.0
// Images among the columns of a table, through the C interface.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

#include "core/data/image.h"
#include "tests/capi/handed.h"
#include "tests/capi/small_training.h"

namespace cafetiere::pictures {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const json kSchema = {{"columns",
                       {{{"name", "photo"}, {"type", "u8"}},
                        {{"name", "x"}, {"type", "f32"}},
                        {{"name", "y"}, {"type", "string"}}}},
                      {"id", ""}};

struct Example {
  std::string photo;
  float x = 0;
  std::string y = "left";
};
using Examples = std::vector<Example>;

/// A bright bar in a half of the image; colour makes it blue.
Image bar(int size, bool left, int shade, bool colour = false) {
  const int channels = colour ? 3 : 1;
  Image image{size, size, channels, std::vector<uint8_t>(size_t(size * size * channels), 20)};
  for (int y = 0; y < size; ++y) {
    for (int x = left ? 0 : size / 2; x < (left ? size / 2 : size); ++x) {
      image.pixels[size_t((y * size + x) * channels)] = uint8_t(shade);
    }
  }
  return image;
}

std::string png(const Image& image) { return *encode_image(image, "png"); }

/// Its pixels, red first, behind a header.
std::string pnm(const Image& image) {
  std::string text =
      fmt::format("P{}\n{} {}\n255\n", image.channels == 1 ? 5 : 6, image.width, image.height);
  for (size_t i = 0; i < image.pixels.size(); i += size_t(image.channels)) {
    for (int c = image.channels - 1; c >= 0; --c) text += char(image.pixels[i + size_t(c)]);
  }
  return text;
}

Examples bars(int count, bool colour = false) {
  Examples examples;
  for (int i = 0; i < count; ++i) {
    const Image image = bar(10, i % 2 == 0, 120 + i % 90, colour);
    examples.push_back(
        {i % 3 == 0 ? pnm(image) : png(image), float(i % 5), i % 2 ? "right" : "left"});
  }
  return examples;
}

RowBytes bytes_of(std::span<const Example> examples) {
  RowBytes bytes;
  for (const Example& e : examples) bytes.text(e.photo).add(e.x).text(e.y);
  return bytes;
}

json columns(const json& photo = json::object(), bool with_number = true) {
  json image{{"name", "photo"}, {"kind", "IMAGE"}};
  image.update(photo);
  json all{image, {{"name", "y"}, {"kind", "CLASS"}}};
  if (with_number) all.push_back({{"name", "x"}, {"kind", "NUMBER"}});
  return all;
}

/// On one line.
std::string flat(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += word + " ";
  return line;
}

/// The net's text, or the error, of a table that comes in `parts`.
std::string net_of(const Examples& examples, const json& of, size_t parts = 1,
                   const json& more = json::object()) {
  const std::string request = json{{"schema", kSchema}, {"columns", of}}.dump();
  json options{{"label", "y"}, {"batch", 16}, {"layers", {8}}};
  options.update(more);
  cft_table* whole = nullptr;
  if (cft_table_create(request.c_str(), &whole) != 0) return cft_last_error();
  std::string text;
  const size_t step = (examples.size() + parts - 1) / parts;
  for (size_t at = 0; at < examples.size() && text.empty(); at += step) {
    const std::span<const Example> rows(&examples[at], std::min(step, examples.size() - at));
    cft_table* part = nullptr;
    EXPECT_EQ(cft_table_create(request.c_str(), &part), 0);
    const RowBytes bytes = bytes_of(rows);
    void* counted = nullptr;
    uint64_t size = 0;
    if (cft_table_add(part, int64_t(rows.size()), bytes.span().data(), bytes.span().size()) != 0 ||
        cft_table_statistics(part, &counted, &size) != 0 ||
        cft_table_merge(whole, counted, size) != 0) {
      text = cft_last_error();
    }
    cft_free(counted);
    cft_table_destroy(part);
  }
  char* out = nullptr;
  if (text.empty())
    text = cft_table_net(whole, options.dump().c_str(), &out) == 0 ? out : cft_last_error();
  cft_free(out);
  cft_table_destroy(whole);
  return text;
}

std::string train(const std::string& net, const Examples& examples) {
  const json options{{"solver", "type: 'Adam' base_lr: 0.01 lr_policy: 'fixed' max_iter: 60"},
                     {"net", net}};
  cft_trainer* trainer = nullptr;
  EXPECT_EQ(cft_trainer_create(options.dump().c_str(), nullptr, &trainer), 0) << cft_last_error();
  cft_rows* rows = nullptr;
  EXPECT_EQ(cft_rows_create(kSchema.dump().c_str(), &rows), 0);
  const RowBytes bytes = bytes_of(examples);
  EXPECT_EQ(
      cft_rows_append(rows, int64_t(examples.size()), bytes.span().data(), bytes.span().size()), 0);
  EXPECT_EQ(cft_trainer_run(trainer, nullptr, rows), 0) << cft_last_error();
  std::string weights = handed_bytes(cft_trainer_model, trainer);
  cft_rows_destroy(rows);
  cft_trainer_destroy(trainer);
  return weights;
}

/// The probabilities of "left", or the error.
std::pair<std::vector<float>, std::string> predict(const std::string& net,
                                                   const std::string& weights,
                                                   const Examples& examples) {
  const json options{{"net", net + "state { phase: TEST stage: 'predict' }"},
                     {"schema", kSchema},
                     {"outputs", {"probability"}}};
  cft_predictor* predictor = nullptr;
  EXPECT_EQ(
      cft_predictor_create(options.dump().c_str(), weights.data(), weights.size(), &predictor), 0)
      << cft_last_error();
  std::vector<float> both(2 * examples.size()), left;
  float* outputs[] = {both.data()};
  const RowBytes bytes = bytes_of(examples);
  const bool done = cft_predictor_run(predictor, int64_t(examples.size()), bytes.span().data(),
                                      bytes.span().size(), outputs) == 0;
  const std::string error = done ? "" : cft_last_error();
  cft_predictor_destroy(predictor);
  for (size_t i = 0; i < both.size(); i += 2) left.push_back(both[i]);
  return {left, error};
}

TEST(TableImages, ANetLearnsFromThemBesideNumbers) {
  const Examples examples = bars(48);
  const std::string net = net_of(examples, columns());
  EXPECT_THAT(flat(net),
              AllOf(HasSubstr("shape: 1 shape: 10 shape: 10"), HasSubstr("image/photo/conv1")));
  const std::string weights = train(net, examples);
  const std::vector<float> left = predict(net, weights, examples).first;
  for (size_t i = 0; i < left.size(); ++i) EXPECT_EQ(left[i] > 0.5F, examples[i].y == "left") << i;
  // Files and pixels are the same; others are made of the size and the colours that it knows.
  const Image one = bar(10, true, 150), large = resize_image(one, 20, 20);
  Image coloured = one;
  coloured.channels = 3;
  coloured.pixels.clear();
  for (uint8_t level : one.pixels) coloured.pixels.insert(coloured.pixels.end(), 3, level);
  const auto seen = predict(net, weights, {{png(one)}, {pnm(one)}, {pnm(coloured)}, {png(large)}});
  EXPECT_EQ(seen.first[0], seen.first[1]);
  EXPECT_EQ(seen.first[0], seen.first[2]);
  EXPECT_GT(seen.first[3], 0.5F);
  EXPECT_THAT(predict(net, weights, {{"no image"}}).second,
              AllOf(HasSubstr("column \"photo\""), HasSubstr("not a JPEG, PNG or WebP image")));
  EXPECT_THAT(predict(net, weights, {{"P5\n10 10\n255\nshort"}}).second, HasSubstr("PNM: 5 bytes"));
  EXPECT_EQ(predict(net, weights, {{""}}).second, "");  // missing: the mean
}

TEST(TableImages, WhatIsLearnedOfThemDoesNotDependOnThePartitioning) {
  Examples examples = bars(30, true);
  examples[7].photo = png(bar(10, false, 77));  // gray among colours
  examples[9].photo = "";
  const std::string net = net_of(examples, columns());
  EXPECT_THAT(flat(net), HasSubstr("shape: 3 shape: 10 shape: 10"));
  EXPECT_EQ(net_of(examples, columns(), 7), net);
  std::ranges::reverse(examples);
  EXPECT_EQ(net_of(examples, columns(), 4), net);
}

TEST(TableImages, SizesMustBeOneOrBeGiven) {
  Examples examples = bars(12);
  examples[3].photo = png(bar(16, true, 200));
  EXPECT_THAT(net_of(examples, columns()),
              AllOf(HasSubstr("column \"photo\""), HasSubstr("from 10 x 10 to 16 x 16")));
  EXPECT_THAT(flat(net_of(examples, columns({{"resize", {8, 12}}}))),
              HasSubstr("shape: 1 shape: 8 shape: 12"));
  EXPECT_THAT(net_of(examples, columns({{"resize", {8, 0}}})),
              HasSubstr("\"resize\": [height, width]"));
  Examples none = bars(4);
  for (Example& e : none) e.photo = "";
  EXPECT_THAT(net_of(none, columns()), HasSubstr("no image in any row"));
  none[2].photo = "GIF89a";
  EXPECT_THAT(net_of(none, columns()),
              AllOf(HasSubstr("column \"photo\""), HasSubstr("not a JPEG, PNG or WebP image")));
}

TEST(TableImages, GivenLayersReadThem) {
  const Examples examples = bars(24);
  const std::string own = R"(layer { name: "c" type: "Convolution" bottom: "input" top: "c"
      convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } })";
  const std::string alone = net_of(examples, columns(json::object(), false), 1, {{"net", own}});
  EXPECT_THAT(alone, testing::Not(HasSubstr("conv1")));
  EXPECT_EQ(predict(alone, train(alone, examples), examples).second, "");
  const std::string beside = R"(
    layer { name: "c" type: "Convolution" bottom: "image/photo" top: "c"
      convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
    layer { name: "f" type: "Flatten" bottom: "c" top: "f" }
    layer { name: "all" type: "Concat" bottom: "f" bottom: "input" top: "all" })";
  const std::string both = net_of(examples, columns(), 1, {{"net", beside}});
  EXPECT_THAT(both, testing::Not(HasSubstr("conv1")));
  EXPECT_EQ(predict(both, train(both, examples), examples).second, "");
}

}  // namespace
}  // namespace cafetiere::pictures
