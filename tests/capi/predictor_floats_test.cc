// SPDX-License-Identifier: Apache-2.0
// Prediction of rows of floats through the C interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "cafetiere/c_api.h"
#include "core/base/float_mode.h"
#include "tests/capi/small_predictor.h"
#include "tests/data/rows.h"

namespace cafetiere {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

/// `count` rows of one column of random pixels, as floats one after another.
std::vector<float> random_floats(int64_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> floats(size_t(count * kPixels));
  for (float& v : floats) v = normal(random);
  return floats;
}

/// What cft_predictor_floats says of `count` rows of one column.
int run_floats(cft_predictor* p, int64_t count, const std::vector<float>& floats, uint64_t of_row,
               std::vector<float>* scores) {
  const float* const columns[] = {floats.data()};
  float* const outputs[] = {scores->data()};
  const uint64_t room = scores->size();
  return cft_predictor_floats(p, count, columns, &of_row, 1, outputs, &room, 1);
}

/// Two batches and a tail, with a schema and without one.
TEST(PredictorFloats, GiveTheBitsOfEncodedRows) {
  constexpr int64_t kRows = 35;
  const std::vector<float> floats = random_floats(kRows);
  RowBytes rows;
  for (int64_t i = 0; i < kRows; ++i) {
    rows.add_all(
        std::vector<float>(floats.begin() + i * kPixels, floats.begin() + (i + 1) * kPixels));
  }
  const std::vector<float> expected = run(predictor(kNet, "score").get(), rows, kRows);
  for (const bool schema : {true, false}) {
    nlohmann::json options = options_of(kNet, "score", 0);
    if (!schema) {
      options.erase("schema");
      options.erase("inputs");
    }
    const auto p = predictor_of(options, kNet);
    ASSERT_TRUE(p);
    std::vector<float> scores(kRows * kScores);
    ASSERT_EQ(run_floats(p.get(), kRows, floats, kPixels, &scores), 0) << cft_last_error();
    EXPECT_EQ(scores, expected);
    int64_t size = 0;
    EXPECT_EQ(cft_predictor_row_size(p.get(), 0, &size), 0) << cft_last_error();
    EXPECT_EQ(size, kScores);
    EXPECT_EQ(cft_predictor_row_size(p.get(), 1, &size), CFT_NOT_FOUND);
  }
}

/// Some libraries make a process treat the smallest numbers as zero.
TEST(PredictorFloats, DoNotDependOnTheHostsFloatMode) {
  const std::string halve = R"(
    layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 1 dim: 1 } } }
    layer { name: "half" type: "Power" bottom: "data" top: "half" power_param { scale: 0.5 } })";
  const auto p = predictor(halve, "half");
  ASSERT_TRUE(p);
  std::vector<float> scores(1);
  const FloatMode of_the_host(Denormals::kZero);
  ASSERT_EQ(run_floats(p.get(), 1, {FLT_MIN}, 1, &scores), 0) << cft_last_error();
  EXPECT_EQ(std::bit_cast<uint32_t>(scores[0]), 0x00400000U);
}

// In bfloat16 the scores are near those of float32, and a row's do not depend on the rows beside it.
TEST(PredictorFloats, InBfloat16AreNearAndOfTheirRowAlone) {
  constexpr int64_t kRows = 35;
  const std::vector<float> floats = random_floats(kRows);
  const auto scores_of = [&](const char* precision, int64_t rows) {
    nlohmann::json options = options_of(kNet, "score", 0);
    options["precision"] = precision;
    const auto p = predictor_of(options, kNet);
    std::vector<float> scores(size_t(rows * kScores));
    EXPECT_EQ(run_floats(p.get(), rows, floats, kPixels, &scores), 0) << cft_last_error();
    return scores;
  };
  const std::vector<float> wide = scores_of("float32", kRows), near = scores_of("bf16", kRows);
  EXPECT_NE(near, wide);
  for (size_t i = 0; i < wide.size(); ++i) EXPECT_NEAR(near[i], wide[i], 0.1) << i;
  const std::vector<float> few = scores_of("bf16", 3);
  EXPECT_EQ(few, std::vector<float>(near.begin(), near.begin() + 3 * kScores));
  EXPECT_THAT((std::vector{wide, near}), Contains(scores_of("auto", kRows)));
}

TEST(PredictorFloats, AnUnknownPrecisionIsRefused) {
  nlohmann::json options = options_of(kNet, "score", 0);
  const std::string weights = filler_weights(kNet);
  for (const auto& [precision, reason] :
       {std::pair{"half",
                  "precision 'half' is none of float32, bf16x6, bf16, auto and auto_float32"},
        {"auto_float32", "precision 'auto_float32' is for training"},
        {"bf16x6",
         "precision 'bf16x6' is for training: the scores of a row would depend on the "
         "number of rows; use float32, bf16 or auto"}}) {
    options["precision"] = precision;
    cft_predictor* p = nullptr;
    EXPECT_EQ(cft_predictor_create(options.dump().c_str(), weights.data(), weights.size(), &p),
              CFT_INVALID_ARGUMENT);
    EXPECT_THAT(cft_last_error(), HasSubstr(reason));
  }
}

TEST(PredictorFloats, OfTwoColumnsGiveTheBitsOfEncodedRows) {
  const std::vector<float> expected =
      run(predictor_of(recurrent_options(), kRecurrent).get(), sequences(3), 3);
  const auto p = predictor_of(recurrent_options(), kRecurrent);
  ASSERT_TRUE(p);
  const std::vector<float> data{1, 0, 2, -1, 3, -2}, cont(6, 1.f);
  const float* const columns[] = {data.data(), cont.data()};
  const uint64_t floats[] = {2, 2};
  std::vector<float> scores(expected.size());
  float* const outputs[] = {scores.data()};
  const uint64_t room = scores.size();
  ASSERT_EQ(cft_predictor_floats(p.get(), 3, columns, floats, 2, outputs, &room, 1), 0)
      << cft_last_error();
  EXPECT_EQ(scores, expected);
}

TEST(PredictorFloats, AreRefusedWhereTheyAreNotTheNets) {
  const auto p = predictor(kNet, "score");
  ASSERT_TRUE(p);
  const std::vector<float> floats = random_floats(1);
  std::vector<float> scores(kScores, -1);
  EXPECT_EQ(run_floats(p.get(), 1, floats, kPixels - 1, &scores), CFT_INVALID_ARGUMENT);
  EXPECT_THAT(cft_last_error(), HasSubstr("719"));
  EXPECT_EQ(run_floats(p.get(), 2, floats, kPixels, &scores), CFT_INVALID_ARGUMENT);
  EXPECT_EQ(run_floats(p.get(), -1, floats, kPixels, &scores), CFT_INVALID_ARGUMENT);
  EXPECT_THAT(scores, Each(-1));
  nlohmann::json options = options_of(kNet, "score", 0);
  options["schema"]["columns"][0]["type"] = "u8";
  const auto bytes = predictor_of(options, kNet);
  EXPECT_EQ(run_floats(bytes.get(), 1, floats, kPixels, &scores), CFT_INVALID_ARGUMENT);
  EXPECT_THAT(cft_last_error(), HasSubstr("of type u8"));
}

}  // namespace
}  // namespace cafetiere
