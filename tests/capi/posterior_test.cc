// SPDX-License-Identifier: Apache-2.0
// Trainings that end with the posterior means of an embedding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/model/weights.h"
#include "tests/capi/handed.h"
#include "tests/capi/small_training.h"

namespace cafetiere::posterior_means {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kValues = 200, kFirst = 2, kRowsOfValue = 12;

/// Values are of two kinds, whose labels are 1 with these probabilities.
double chance_of(int value) { return value % 3 == 0 ? 0.85 : 0.2; }

cft_rows* rows_of_values(int rank, int ranks) {
  RowBytes bytes;
  std::mt19937 random(5);
  int64_t count = 0;
  for (int i = 0; i < kValues * kRowsOfValue; ++i) {
    const int value = i % kValues;
    const bool label = double(random() % 1000) / 1000 < chance_of(value);
    if (i % ranks != rank) continue;
    bytes.add(float(value)).add(int32_t(label));
    ++count;
  }
  cft_rows* rows = nullptr;
  EXPECT_EQ(cft_rows_create(kSmallSchema, &rows), 0) << cft_last_error();
  EXPECT_EQ(cft_rows_append(rows, count, bytes.span().data(), bytes.span().size()), 0)
      << cft_last_error();
  return rows;
}

std::string net(const std::string& posterior) {
  return R"(
  layer { name: "rows" type: "MemoryData" top: "data" top: "label"
    memory_data_param { batch_size: 50 channels: 1 height: 1 width: 1 } }
  layer { name: "embedding" type: "Embed" bottom: "data" top: "embedding"
    embed_param { num_output: 6 input_dim: 200 bias_term: false weight_filler { type: "gaussian" std: 0.05 } )" +
         posterior + R"( } }
  layer { name: "flat" type: "Flatten" bottom: "embedding" top: "flat" }
  layer { name: "own" type: "InnerProduct" bottom: "flat" top: "own"
    inner_product_param { num_output: 8 weight_filler { type: "msra" } } }
  layer { name: "bend" type: "ReLU" bottom: "own" top: "own" }
  layer { name: "score" type: "InnerProduct" bottom: "own" top: "score"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
  layer { name: "chance" type: "Softmax" bottom: "score" top: "chance" include { stage: "predict" } })";
}

std::string posterior(const std::string& labels = "label") {
  return R"(posterior { prototypes: 40 nearest: 10 first: 2 output: "own" scores: "score" labels: ")" +
         labels + R"(" })";
}

constexpr const char* kSolver =
    "type: 'AdamW' base_lr: 0.02 momentum: 0.9 lr_policy: 'cosine' max_iter: 400 weight_decay: "
    "0.01";

json options_of(const std::string& net, int rank = 0, int ranks = 1) {
  return {{"solver", kSolver}, {"net", net}, {"rank", rank}, {"size", ranks}, {"shards", 2}};
}

/// The error of a run, "" if there was none, and its model.
struct Ended {
  std::string error, model;
};

Ended run(const json& options, cft_group* group = nullptr) {
  Ended done;
  cft_trainer* trainer = nullptr;
  cft_rows* rows = rows_of_values(options["rank"], options["size"]);
  if (cft_trainer_create(options.dump().c_str(), nullptr, &trainer) != 0 ||
      cft_trainer_run(trainer, group, rows) != 0) {
    done.error = cft_last_error();
  } else {
    done.model = handed_bytes(cft_trainer_model, trainer);
  }
  cft_rows_destroy(rows);
  cft_trainer_destroy(trainer);
  return done;
}

caffe::NetParameter parsed(const Ended& done) {
  EXPECT_EQ(done.error, "");
  caffe::NetParameter model;
  EXPECT_TRUE(model.ParseFromString(done.model));
  return model;
}

caffe::NetParameter alone(const std::string& net, int threads = 1) {
  json options = options_of(net);
  options["threads"] = threads;
  return parsed(run(options));
}

/// The models of two ranks.
std::vector<caffe::NetParameter> together(const json& more = json::object()) {
  const auto groups = small_groups(2);
  std::vector<Ended> runs(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      json options = options_of(net(posterior()), rank, 2);
      options.update(more);
      runs[size_t(rank)] = run(options, groups[size_t(rank)]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (cft_group* group : groups) cft_group_destroy(group);
  return {parsed(runs[0]), parsed(runs[1])};
}

std::vector<float> blob(const caffe::NetParameter& model, const std::string& layer, int index = 0) {
  for (const caffe::LayerParameter& l : model.layer()) {
    if (l.name() == layer) return {l.blobs(index).data().begin(), l.blobs(index).data().end()};
  }
  ADD_FAILURE() << "no layer " << layer;
  return {};
}

/// The mean absolute error of a value's probability.
double error_of(const caffe::NetParameter& model) {
  const std::string bytes = model.SerializeAsString();
  const std::string options = json{
      {"net", net("") + "\nstate { phase: TEST stage: \"predict\" }"},
      {"schema", json::parse(kSmallSchema)},
      {"outputs", {"chance"}}}.dump();
  cft_predictor* predictor = nullptr;
  EXPECT_EQ(cft_predictor_create(options.c_str(), bytes.data(), bytes.size(), &predictor), 0)
      << cft_last_error();
  RowBytes rows;
  for (int value = 0; value < kValues; ++value) rows.add(float(value)).add(int32_t{0});
  std::vector<float> chances(2 * kValues);
  float* const outputs[] = {chances.data()};
  EXPECT_EQ(cft_predictor_run(predictor, kValues, rows.span().data(), rows.span().size(), outputs),
            0)
      << cft_last_error();
  cft_predictor_destroy(predictor);
  double sum = 0;
  for (int value = kFirst; value < kValues; ++value) {
    sum += std::abs(double(chances[size_t(2 * value + 1)]) - chance_of(value));
  }
  return sum / (kValues - kFirst);
}

TEST(PosteriorMeans, AreNearerToTheTruthAndChangeNothingElse) {
  const caffe::NetParameter trained = alone(net("")), model = alone(net(posterior()));
  EXPECT_EQ(blob(trained, "own"), blob(model, "own"));
  EXPECT_EQ(blob(trained, "score", 1), blob(model, "score", 1));
  const auto before = blob(trained, "embedding"), after = blob(model, "embedding");
  ASSERT_EQ(after.size(), size_t(kValues * 6));
  EXPECT_TRUE(std::equal(after.begin(), after.begin() + kFirst * 6, before.begin()));
  EXPECT_NE(before, after);
  EXPECT_LT(error_of(model), 0.8 * error_of(trained));
}

TEST(PosteriorMeans, DependNeitherOnThreadsNorOnRanks) {
  const std::string one = alone(net(posterior())).SerializeAsString();
  EXPECT_TRUE(alone(net(posterior()), 3).SerializeAsString() == one);
  for (const auto& model : together()) EXPECT_TRUE(model.SerializeAsString() == one);
}

TEST(PosteriorMeans, AreTakenByRanksThatMayComeAndGo) {
  const auto models = together({{"sync", "mode: 'easgd'"}, {"survivors", 1}});
  EXPECT_TRUE(models[0].SerializeAsString() == models[1].SerializeAsString());
  EXPECT_LT(error_of(models[0]), 0.8 * error_of(alone(net(""))));
}

TEST(PosteriorMeans, NeedWhatTheyName) {
  const auto error = [](const std::string& posterior) {
    return run(options_of(net("posterior { prototypes: 40 " + posterior + " }"))).error;
  };
  EXPECT_THAT(error(R"(output: "own" scores: "score" labels: "score")"),
              HasSubstr("'score' is not a top with one number per row"));
  EXPECT_THAT(error(R"(output: "own" scores: "class" labels: "label")"),
              AllOf(HasSubstr("layer 'embedding'"), HasSubstr("the net has no blob 'class'")));
  EXPECT_THAT(error(R"(output: "data" scores: "score" labels: "label")"),
              HasSubstr("blob 'data' is not computed from 'embedding'"));
  EXPECT_THAT(error(R"(output: "own" scores: "flat" labels: "label")"),
              HasSubstr("blob 'flat' is not computed from 'own'"));
  EXPECT_THAT(error(R"(output: "own" scores: "score" labels: "label" nearest: 0)"),
              HasSubstr("there must be a nearest prototype"));
  EXPECT_THAT(error(R"(output: "own" scores: "score" labels: "label" first: 200)"),
              HasSubstr("more rows than `first`, which is 200"));
}

}  // namespace
}  // namespace cafetiere::posterior_means
