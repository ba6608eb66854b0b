// SPDX-License-Identifier: Apache-2.0
// Prediction through the C interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "cafetiere/c_api.h"
#include "tests/capi/handed.h"
#include "tests/capi/small_predictor.h"
#include "tests/data/rows.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// `count` rows of random pixels.
RowBytes random_rows(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  RowBytes rows;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<float> row(kPixels);
    for (float& v : row) v = normal(random);
    rows.add_all(row);
  }
  return rows;
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

TEST(Predictor, ImagesAreNotMirroredAtRandom) {
  const std::string net = R"(
    layer { name: "in" type: "MemoryData" top: "data" top: "label"
      transform_param { mirror: true }
      memory_data_param { batch_size: 4 channels: 5 height: 12 width: 12 } }
    layer { name: "score" type: "InnerProduct" bottom: "data" top: "score"
      inner_product_param { num_output: 1 weight_filler { type: "xavier" } } })";
  const auto scores = run(predictor(net, "score").get(), same_rows(10), 10);
  EXPECT_THAT(scores, Each(scores[0]));
  EXPECT_NE(scores[0], 0);
}

TEST(Predictor, TakesWeightsFromAFileOfEitherForm) {
  const TempDir folder;
  const auto expected = run(predictor(kNet, "score").get(), same_rows(2), 2);
  cft_net* net = nullptr;
  ASSERT_EQ(cft_net_create(nlohmann::json{{"text", kNet}}.dump().c_str(), nullptr, &net), 0)
      << cft_last_error();
  for (const int hdf5 : {0, 1}) {
    const std::string path = folder.path(hdf5 ? "w.caffemodel.h5" : "w.caffemodel");
    EXPECT_EQ(cft_net_save(net, path.c_str(), hdf5), 0) << cft_last_error();
    nlohmann::json options = options_of(kNet, "score", 0);
    options["weights"] = path;
    cft_predictor* made = nullptr;
    ASSERT_EQ(cft_predictor_create(options.dump().c_str(), nullptr, 0, &made), 0)
        << cft_last_error();
    const std::unique_ptr<cft_predictor, Destroy> p(made);
    EXPECT_EQ(run(p.get(), same_rows(2), 2), expected);
  }
  cft_net_destroy(net);
}

TEST(Predictor, RefusesWeightsOfAnotherNet) {
  const TempDir folder;
  const std::string path = folder.path("w.caffemodel");
  std::string other = kNet;
  for (size_t at; (at = other.find("name: \"score\"")) != std::string::npos;) {
    other.replace(at, 13, "name: \"other\"");
  }
  cft_net* net = nullptr;
  ASSERT_EQ(cft_net_create(nlohmann::json{{"text", other}}.dump().c_str(), nullptr, &net), 0)
      << cft_last_error();
  EXPECT_EQ(cft_net_save(net, path.c_str(), 0), 0) << cft_last_error();
  cft_net_destroy(net);
  nlohmann::json options = options_of(kNet, "score", 0);
  options["weights"] = path;
  cft_predictor* made = nullptr;
  EXPECT_NE(cft_predictor_create(options.dump().c_str(), nullptr, 0, &made), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("there are no weights for layer"));
}

/// BlobProtos of 1 x 2 x 2 ones and twos, in base64.
constexpr const char* kOnes = "CAEQARgCIAIqEAAAgD8AAIA/AACAPwAAgD8=";
constexpr const char* kTwos = "CAEQARgCIAIqEAAAAEAAAABAAAAAQAAAAEA=";

TEST(Predictor, MeanFilesMayBeGivenByTheirNames) {
  const std::string net = R"(
    layer { name: "in" type: "MemoryData" top: "data"
      transform_param { mean_file: "far:///mean" }
      memory_data_param { batch_size: 2 channels: 1 height: 2 width: 2 } }
    layer { name: "same" type: "Power" bottom: "data" top: "same" })";
  const auto scores = [&](const nlohmann::json& means) {
    nlohmann::json options = options_of(net, "same", 0);
    options["mean_files"] = means;
    const auto p = predictor_of(options, net);
    RowBytes rows;
    rows.add_all(std::vector<float>{1, 2, 3, 4});
    return run(p.get(), rows, 1);
  };
  EXPECT_THAT(scores({{"far:///mean", kOnes}}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(scores({{"far:///mean", kTwos}}), ElementsAre(-1, 0, 1, 2));
  for (const nlohmann::json& wrong :
       {nlohmann::json::object(), nlohmann::json{{"far:///mean", "?"}},
        nlohmann::json{{"far:///mean", "AAAA"}}, nlohmann::json{{"far:///mean", 3}},
        nlohmann::json("text")}) {
    nlohmann::json options = options_of(net, "same", 0);
    options["mean_files"] = wrong;
    cft_predictor* p = nullptr;
    EXPECT_NE(cft_predictor_create(options.dump().c_str(), nullptr, 0, &p), 0) << wrong;
  }
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

struct Mixed {
  const char* name;
  const char* layers;  ///< from "score" (rows, 10) to "out"
};

/// A tail of three is what a batch of three is, wherever a layer lets rows meet.
class PredictorTail : public testing::TestWithParam<Mixed> {};

TEST_P(PredictorTail, IsABatchOfItsOwnWhereRowsMeet) {
  constexpr int64_t kTail = 3;
  const std::string net = std::string(kNet) + GetParam().layers;
  const auto whole = predictor(net, "out"), small = predictor(net, "out", kTail);
  ASSERT_TRUE(whole && small);
  const RowBytes rows = random_rows(kTail, 5);
  const std::vector<float> tail = run(whole.get(), rows, kTail);
  const std::vector<float> expected = run(small.get(), rows, kTail);
  ASSERT_EQ(tail.size(), expected.size());
  for (size_t i = 0; i < tail.size(); ++i) {
    EXPECT_NEAR(tail[i], expected[i], 1e-5F * (1 + std::abs(expected[i]))) << i;
  }
}

const Mixed kMixed[] = {
    {"Softmax", R"(layer { name: "out" type: "Softmax" bottom: "score" top: "out"
                     softmax_param { axis: 0 } })"},
    {"SoftmaxOfRowsTakenApart",
     R"(layer { name: "flat" type: "Reshape" bottom: "score" top: "flat"
          reshape_param { shape { dim: -1 dim: 5 } } }
        layer { name: "out" type: "Softmax" bottom: "flat" top: "out" softmax_param { axis: 0 } })"},
    {"BatchNorm", R"(layer { name: "out" type: "BatchNorm" bottom: "score" top: "out"
                       batch_norm_param { use_global_stats: false } })"},
    {"Reduction", R"(layer { name: "out" type: "Reduction" bottom: "score" top: "out"
                       reduction_param { axis: 0 operation: MEAN } })"},
    {"ReductionBroadcast",
     R"(layer { name: "sum" type: "Reduction" bottom: "score" top: "sum"
          reduction_param { axis: 0 } }
        layer { name: "out" type: "Bias" bottom: "score" bottom: "sum" top: "out"
          bias_param { axis: -2 } })"},
    {"ArgMax", R"(layer { name: "out" type: "ArgMax" bottom: "score" top: "out"
                    argmax_param { axis: 0 out_max_val: true } })"},
    {"Concat", R"(layer { name: "out" type: "Concat" bottom: "score" bottom: "score" top: "out"
                    concat_param { axis: 0 } })"},
    {"Tile", R"(layer { name: "out" type: "Tile" bottom: "score" top: "out"
                  tile_param { axis: 0 tiles: 2 } })"},
    {"Reshape", R"(layer { name: "out" type: "Reshape" bottom: "score" top: "out"
                     reshape_param { shape { dim: 10 dim: -1 } } })"},
};

INSTANTIATE_TEST_SUITE_P(Layers, PredictorTail, testing::ValuesIn(kMixed),
                         [](const auto& info) { return info.param.name; });

TEST(Predictor, RefusesAnOutputThatIsNotOfWholeRows) {
  const std::string net = std::string(kNet) + R"(
    layer { name: "cut" type: "Slice" bottom: "score" top: "first" top: "rest"
      slice_param { axis: 0 slice_point: 1 } })";
  const nlohmann::json options = options_of(net, "rest", 0);
  const std::string weights = filler_weights(net);
  cft_predictor* p = nullptr;
  EXPECT_NE(cft_predictor_create(options.dump().c_str(), weights.data(), weights.size(), &p), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("output 'rest'"));
}

/// What follows the rows' axis, or only moves it, leaves them alone: the tail has the kernels, and so
/// the bits, of a full batch.
TEST(Predictor, AddsRowsWhereLayersKeepThemApart) {
  constexpr int64_t kRows = 19;
  const auto p = predictor(std::string(kNet) + R"(
      layer { name: "norm" type: "BatchNorm" bottom: "conv2" top: "norm" }
      layer { name: "lrn" type: "LRN" bottom: "norm" top: "lrn" }
      layer { name: "pool" type: "Pooling" bottom: "lrn" top: "pool" pooling_param { stride: 2 kernel_size: 2 } }
      layer { name: "flat" type: "Flatten" bottom: "pool" top: "flat" }
      layer { name: "both" type: "Concat" bottom: "flat" bottom: "score" top: "both" }
      layer { name: "turned" type: "Permute" bottom: "both" top: "turned" permute_param { order: 1 order: 0 } }
      layer { name: "prob" type: "Softmax" bottom: "turned" top: "prob" softmax_param { axis: 0 } }
    )",
                           "prob");
  ASSERT_TRUE(p);
  const std::vector<float> values = run(p.get(), same_rows(kRows), kRows);
  const auto size = ptrdiff_t(values.size() / kRows);
  for (int64_t i = 1; i < kRows; ++i) {
    EXPECT_TRUE(std::equal(values.begin(), values.begin() + size, values.begin() + i * size)) << i;
  }
}

/// The names of what a net with kNet's weights gives when nobody says what to compute.
std::vector<std::string> default_outputs(const std::string& net) {
  nlohmann::json options = options_of(net, "", 0);
  options.erase("outputs");
  const auto p = predictor_of(options, kNet);
  if (!p) return {};
  const auto outputs =
      nlohmann::json::parse(handed_text(cft_predictor_describe, p.get()))["outputs"];
  std::vector<std::string> names;
  for (const nlohmann::json& output : outputs) names.push_back(output["name"]);
  const std::string described =
      handed_text(cft_describe, nlohmann::json{{"net", net}}.dump().c_str());  // without weights
  EXPECT_EQ(nlohmann::json::parse(described)["predictions"], names);
  return names;
}

/// A row of 16 has five items on the first axis of the output.
TEST(Predictor, TellsTheShapeOfARowThatHasSeveralItems) {
  const std::string items = R"(
    layer { name: "flat" type: "Reshape" bottom: "score" top: "flat"
      reshape_param { shape { dim: -1 dim: 2 } } })";
  const auto p = predictor(kNet + items, "flat");
  ASSERT_TRUE(p);
  const auto told = nlohmann::json::parse(handed_text(cft_predictor_describe, p.get()));
  EXPECT_EQ(told["batch"], 16);
  EXPECT_EQ(told["outputs"][0]["shape"], (std::vector{5, 2}));
  EXPECT_EQ(told["outputs"][0]["size"], kScores);
}

TEST(Predictor, NeedsNoArraysForNoRows) {
  const auto p = predictor(kNet, "score");
  float* const none[] = {nullptr};
  EXPECT_EQ(cft_predictor_run(p.get(), 0, "", 0, none), 0) << cft_last_error();
  const RowBytes row = same_rows(1);
  EXPECT_NE(cft_predictor_run(p.get(), 1, row.span().data(), row.span().size(), none), 0);
}

/// Without `outputs` a net gives what only losses, scores and layers without tops read.
TEST(Predictor, GivesWhatLayersWithoutTopsRead) {
  EXPECT_THAT(default_outputs(std::string(kNet) + R"(
    layer { name: "file" type: "HDF5Output" bottom: "score" bottom: "score"
      hdf5_output_param { file_name: "not written" } }
    layer { name: "silence" type: "Silence" bottom: "score" })"),
              ElementsAre("score"));
}

/// The engine copies a blob for each of its readers: no copy is an output beside the blob itself.
TEST(Predictor, GivesNoCopyOfABlobThatALossReadsToo) {
  EXPECT_THAT(default_outputs(std::string(kNet) + R"(
    layer { name: "prob" type: "Softmax" bottom: "score" top: "prob" }
    layer { name: "silence" type: "Silence" bottom: "score" })"),
              ElementsAre("prob"));
}

/// One that the net's file makes itself is a blob like others.
TEST(Predictor, GivesACopyThatTheNetMakes) {
  EXPECT_THAT(default_outputs(std::string(kNet) + R"(
    layer { name: "two" type: "Split" bottom: "score" top: "first" top: "second" }
    layer { name: "prob" type: "Softmax" bottom: "first" top: "prob" }
    layer { name: "silence" type: "Silence" bottom: "second" })"),
              ElementsAre("second", "prob"));
}

TEST(Predictor, WritesNothingWhereThereIsNoRoom) {
  const auto p = predictor(kNet, "score");
  ASSERT_TRUE(p);
  const RowBytes rows = same_rows(2);
  std::vector<float> scores(2 * kScores, -1);
  float* const outputs[] = {scores.data()};
  const auto fill = [&](uint64_t room, int32_t count) {
    return cft_predictor_fill(p.get(), 2, rows.span().data(), rows.span().size(), outputs, &room,
                              count);
  };
  EXPECT_EQ(fill(2 * kScores - 1, 1), CFT_INVALID_ARGUMENT);
  EXPECT_THAT(cft_last_error(), HasSubstr("'score' has space for 19 floats"));
  EXPECT_EQ(fill(2 * kScores, 2), CFT_INVALID_ARGUMENT);
  EXPECT_THAT(scores, Each(-1));
  EXPECT_EQ(fill(2 * kScores, 1), 0) << cft_last_error();
  EXPECT_NE(scores.back(), -1);
}

/// Pages that this process has taken.
int64_t page_faults() {
  rusage usage{};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_minflt;
}

TEST(Predictor, ReadsEncodedRowsWhereTheyAre) {
  const auto p = predictor(kNet, "score");
  ASSERT_TRUE(p);
  const RowBytes rows = same_rows(16);
  std::vector<float> scores(16 * kScores);
  float* const outputs[] = {scores.data()};
  const auto run = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(cft_predictor_run(p.get(), 16, rows.span().data(), rows.span().size(), outputs), 0)
          << cft_last_error();
    }
  };
  run(2);
  const int64_t before = page_faults();
  run(100);
  EXPECT_LT(page_faults() - before, 100) << "each call takes memory from the system";
}

/// A full batch after another and a tail: both kinds of plans go on where the rows before ended.
TEST(Predictor, BeginsAnewWhenItIsReset) {
  const auto p = predictor_of(recurrent_options(), kRecurrent);
  ASSERT_TRUE(p);
  const RowBytes rows = sequences(5);
  const std::vector<float> first = run(p.get(), rows, 5);
  EXPECT_NE(run(p.get(), rows, 5), first) << "the net keeps no state: the test shows nothing";
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cft_predictor_reset(p.get()), 0) << cft_last_error();
    EXPECT_EQ(run(p.get(), rows, 5), first);
  }
}

/// One that shares another's weights has a state of its own, and outlives it.
TEST(Predictor, SharesItsWeightsAndNothingElse) {
  auto p = predictor_of(recurrent_options(), kRecurrent);
  ASSERT_TRUE(p);
  const RowBytes rows = sequences(5);
  const std::vector<float> first = run(p.get(), rows, 5);
  cft_predictor* made = nullptr;
  ASSERT_EQ(cft_predictor_share(p.get(), &made), 0) << cft_last_error();
  const std::unique_ptr<cft_predictor, Destroy> another(made);
  p.reset();
  EXPECT_EQ(run(another.get(), rows, 5), first);
}

}  // namespace
}  // namespace cafetiere
