// Prediction through the C interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "cafetiere/c_api.h"
#include "tests/data/rows.h"

namespace cafetiere {
namespace {

using ::testing::Each;

constexpr int64_t kChannels = 5, kSide = 12, kPixels = kChannels * kSide * kSide, kScores = 10;

/// Channels that fill no vectors: a convolution of eight images or more lays them out otherwise than
/// one of fewer, and adds in another order.
constexpr const char* kNet = R"(
  name: "uneven"
  layer { name: "in" type: "Input" top: "data"
    input_param { shape { dim: 16 dim: 5 dim: 12 dim: 12 } } }
  layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
    convolution_param { num_output: 20 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "conv2" type: "Convolution" bottom: "conv1" top: "conv2"
    convolution_param { num_output: 50 kernel_size: 3 weight_filler { type: "xavier" } } }
  layer { name: "score" type: "InnerProduct" bottom: "conv2" top: "score"
    inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
)";

/// The weights that a net's fillers make, as a caffemodel.
std::string first_weights(const std::string& net_text) {
  const std::string path = testing::TempDir() + "predictor_test.caffemodel";
  cft_net* net = nullptr;
  EXPECT_EQ(cft_net_create(nlohmann::json{{"text", net_text}}.dump().c_str(), nullptr, &net), 0)
      << cft_last_error();
  EXPECT_EQ(cft_net_save(net, path.c_str(), 0), 0) << cft_last_error();
  cft_net_destroy(net);
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Destroy {
  void operator()(cft_predictor* p) const { cft_predictor_destroy(p); }
};

std::unique_ptr<cft_predictor, Destroy> predictor(const std::string& net, const char* output) {
  const nlohmann::json options = {
      {"net", net},
      {"schema", {{"columns", {{{"name", "data"}, {"type", "f32"}}}}, {"id", ""}}},
      {"inputs", {{{"top", "data"}, {"column", "data"}}}},
      {"outputs", {output}}};
  const std::string weights = first_weights(net);
  cft_predictor* p = nullptr;
  EXPECT_EQ(cft_predictor_create(options.dump().c_str(), weights.data(), weights.size(), &p), 0)
      << cft_last_error();
  return std::unique_ptr<cft_predictor, Destroy>(p);
}

/// `count` times the same row of random pixels.
RowBytes same_rows(int64_t count) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> row(kPixels);
  for (float& v : row) v = normal(random);
  RowBytes rows;
  for (int64_t i = 0; i < count; ++i) rows.add_all(row);
  return rows;
}

/// The tail of 3 is computed by the kernels of the full batch of 16.
TEST(Predictor, GivesARowTheSameInATailAsInAFullBatch) {
  constexpr int64_t kRows = 19;
  const auto p = predictor(kNet, "score");
  ASSERT_TRUE(p);
  const RowBytes rows = same_rows(kRows);
  std::vector<float> scores(kRows * kScores);
  float* const outputs[] = {scores.data()};
  ASSERT_EQ(cft_predictor_run(p.get(), kRows, rows.span().data(), rows.span().size(), outputs), 0)
      << cft_last_error();
  EXPECT_NE(scores[0], 0);
  for (int64_t i = 1; i < kRows; ++i) {
    EXPECT_TRUE(std::equal(scores.begin(), scores.begin() + kScores,
                           scores.begin() + ptrdiff_t(i * kScores)))
        << "row " << i;
  }
}

/// A mean over the batch is one over the rows that there are: such a net runs its tail at its size.
TEST(Predictor, AddsNoRowsWhereTheBatchIsTakenTogether) {
  constexpr int64_t kRows = 19;
  const std::string sum = R"(
    layer { name: "sum" type: "Reduction" bottom: "score" top: "sum"
      reduction_param { operation: MEAN } })";
  const auto p = predictor(kNet + sum, "sum");
  ASSERT_TRUE(p);
  const RowBytes rows = same_rows(kRows);
  std::vector<float> means(kRows);
  float* const outputs[] = {means.data()};
  ASSERT_EQ(cft_predictor_run(p.get(), kRows, rows.span().data(), rows.span().size(), outputs), 0)
      << cft_last_error();
  EXPECT_NE(means[0], 0);
  EXPECT_THAT(means, Each(::testing::FloatNear(means[0], 1e-4F * std::abs(means[0]))));
}

}  // namespace
}  // namespace cafetiere
