// SPDX-License-Identifier: Apache-2.0
// Nets with several data layers, which one table feeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cafetiere/c_api.h"
#include "core/model/weights.h"
#include "tests/capi/handed.h"
#include "tests/capi/small_predictor.h"
#include "tests/data/rows.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;

constexpr const char* kSchema =
    R"({"columns": [{"name": "x", "type": "f32"}, {"name": "y", "type": "i32"},
                    {"name": "a", "type": "f32"}, {"name": "b", "type": "i32"}], "id": ""})";
constexpr int kRows = 50;

RowBytes row_bytes() {
  RowBytes bytes;
  for (int i = 0; i < kRows; ++i) {
    bytes.add_all(std::vector<float>{float(i % 7), 1, float(i % 3), 1}).add<int32_t>(i % 3);
    bytes.add_all(std::vector<float>{float(i % 5), float(i % 2)}).add<int32_t>(i % 2);
  }
  return bytes;
}

cft_rows* rows() {
  cft_rows* rows = nullptr;
  EXPECT_EQ(cft_rows_create(kSchema, &rows), CFT_OK) << cft_last_error();
  const RowBytes bytes = row_bytes();
  EXPECT_EQ(cft_rows_append(rows, kRows, bytes.span().data(), bytes.span().size()), CFT_OK)
      << cft_last_error();
  return rows;
}

std::string memory(const std::string& data, const std::string& label, int channels,
                   const std::string& rule = "", int batch = 8) {
  return "layer { name: '" + data + "' type: 'MemoryData' top: '" + data + "' top: '" + label +
         "' memory_data_param { batch_size: " + std::to_string(batch) +
         " channels: " + std::to_string(channels) + " height: 1 width: 1 } " + rule + " }\n";
}

/// Two scores, of which the second reads both data; `x` and `a` are the layers that give them.
std::string net(const std::string& x, const std::string& a) {
  return x + R"(layer { name: 'one' type: 'InnerProduct' bottom: 'x' top: 'one'
      inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } })" +
         a + R"(layer { name: 'both' type: 'Concat' bottom: 'x' bottom: 'a' top: 'both' }
    layer { name: 'two' type: 'InnerProduct' bottom: 'both' top: 'two'
      inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }
    layer { name: 'l1' type: 'SoftmaxWithLoss' bottom: 'one' bottom: 'y' top: 'l1' }
    layer { name: 'l2' type: 'SoftmaxWithLoss' bottom: 'two' bottom: 'b' top: 'l2' })";
}

const std::string kOneLayer =
    R"(layer { name: 'rows' type: 'Input' top: 'x' top: 'y' top: 'a' top: 'b'
      input_param { shape { dim: 8 dim: 4 dim: 1 dim: 1 } shape { dim: 8 }
                    shape { dim: 8 dim: 2 dim: 1 dim: 1 } shape { dim: 8 } } })";

/// What a training ends with: its weights, by layer, and its events.
struct Trained {
  std::map<std::string, std::vector<float>> weights;
  std::vector<nlohmann::json> events;
  std::string model;
  std::string error;
};

std::map<std::string, std::vector<float>> weights_of(const std::string& model) {
  std::map<std::string, std::vector<float>> weights;
  const auto net = parse_weights(std::as_bytes(std::span(model)));
  EXPECT_TRUE(net.ok()) << net.status().message();
  for (const caffe::LayerParameter& layer : net->layer()) {
    for (const caffe::BlobProto& blob : layer.blobs()) {
      weights[layer.name()].insert(weights[layer.name()].end(), blob.data().begin(),
                                   blob.data().end());
    }
  }
  return weights;
}

Trained train(const std::string& net, const std::string& solver = "", nlohmann::json inputs = {}) {
  Trained trained;
  nlohmann::json options{
      {"solver",
       "base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 20 random_seed: 3 " + solver},
      {"net", net}};
  if (!inputs.is_null()) options["inputs"] = inputs;
  const cft_callbacks callbacks{
      .struct_size = sizeof(cft_callbacks),
      .context = &trained,
      .event = [](void* to, const char* json) -> int {
        static_cast<Trained*>(to)->events.push_back(nlohmann::json::parse(json));
        return 0;
      },
      .checkpoint = nullptr};
  cft_trainer* trainer = nullptr;
  EXPECT_EQ(cft_trainer_create(options.dump().c_str(), &callbacks, &trainer), CFT_OK)
      << cft_last_error();
  cft_rows* const to_train = rows();
  cft_rows* const to_test = rows();
  EXPECT_EQ(cft_trainer_validation(trainer, to_test), CFT_OK) << cft_last_error();
  if (cft_trainer_run(trainer, nullptr, to_train) == CFT_OK) {
    trained.model = handed_bytes(cft_trainer_model, trainer);
    trained.weights = weights_of(trained.model);
  } else {
    trained.error = cft_last_error();
  }
  cft_rows_destroy(to_train);
  cft_rows_destroy(to_test);
  cft_trainer_destroy(trainer);
  return trained;
}

TEST(DataLayers, SeveralTrainLikeOneWithTheirTops) {
  const Trained one = train(net(kOneLayer, ""));
  EXPECT_EQ(one.weights.size(), 2u) << one.error;
  const Trained two = train(net(memory("x", "y", 4), memory("a", "b", 2)));
  EXPECT_EQ(two.weights, one.weights) << two.error;
  const Trained alone = train(net(
      R"(layer { name: 'x' type: 'Input' top: 'x'
           input_param { shape { dim: 8 dim: 4 dim: 1 dim: 1 } } }
         layer { name: 'labels' type: 'CoSData' top: 'y' top: 'b' cos_data_param { batch_size: 8
           top { name: 'y' type: INT sample_num_axes: 0 }
           top { name: 'b' type: INT sample_num_axes: 0 } } })",
      R"(layer { name: 'a' type: 'MemoryData' top: 'a'
           memory_data_param { batch_size: 8 channels: 2 height: 1 width: 1 } })"));
  EXPECT_EQ(alone.weights, one.weights) << alone.error;
}

/// The phase TEST has one layer less, and one score.
TEST(DataLayers, APhaseMayHaveFewer) {
  const std::string only_train = "include { phase: TRAIN }";
  std::string both = net(memory("x", "y", 4), memory("a", "b", 2, only_train));
  for (const char* layer : {"'Concat' ", "top: 'two'", "bottom: 'two' "}) {
    const size_t at = both.find(layer);
    ASSERT_NE(at, std::string::npos);
    both.insert(at + std::string(layer).size(), " " + only_train + " ");
  }
  const nlohmann::json inputs = {{{"top", "x"}, {"column", "x"}},
                                 {{"top", "a"}, {"column", "a"}},
                                 {{"top", "b"}, {"column", "b"}}};
  const Trained trained = train(both, "test_interval: 10 test_iter: 1", inputs);
  EXPECT_EQ(trained.weights, train(net(kOneLayer, "")).weights) << trained.error;
  std::vector<nlohmann::json> tests;
  for (const auto& event : trained.events) {
    if (event["event"] == "test") tests.push_back(event["outputs"]);
  }
  ASSERT_FALSE(tests.empty());
  EXPECT_TRUE(tests.back().contains("l1"));
  EXPECT_FALSE(tests.back().contains("l2"));
}

TEST(DataLayers, WhatDoesNotGoTogetherIsRefused) {
  const Trained batches = train(net(kOneLayer, memory("c", "d", 2, "", 9)));
  EXPECT_THAT(batches.error, HasSubstr("layer 'c': top 'c' takes batches of 9 rows and 'x' of 8"));
  const Trained bound =
      train(net(memory("x", "y", 4), memory("a", "b", 2)), "", {{{"top", "z"}, {"column", "x"}}});
  EXPECT_THAT(bound.error, HasSubstr("column 'x' is bound to 'z', which is not a top"));
}

TEST(DataLayers, APredictorFillsAll) {
  const std::string several = net(memory("x", "y", 4), memory("a", "b", 2));
  const std::string one = net(kOneLayer, "");
  const std::string model = train(one).model;
  const auto scores = [&](const std::string& text, nlohmann::json inputs,
                          const char* output = "two") {
    const nlohmann::json options{{"net", text},
                                 {"schema", nlohmann::json::parse(kSchema)},
                                 {"inputs", std::move(inputs)},
                                 {"outputs", {output}}};
    cft_predictor* made = nullptr;
    EXPECT_EQ(cft_predictor_create(options.dump().c_str(), model.data(), model.size(), &made),
              CFT_OK)
        << cft_last_error();
    const std::unique_ptr<cft_predictor, Destroy> predictor(made);
    return run(predictor.get(), row_bytes(), kRows);
  };
  const nlohmann::json inputs = {{{"top", "x"}, {"column", "x"}}, {{"top", "a"}, {"column", "a"}}};
  const std::vector<float> found = scores(several, inputs);
  EXPECT_EQ(found, scores(one, inputs));
  // `one` needs the layer behind it as little as the labels.
  EXPECT_EQ(scores(several, inputs, "one"), scores(one, inputs, "one"));
  const std::string behind = memory("a", "b", 2) + net(memory("x", "y", 4), "");
  EXPECT_EQ(scores(behind, inputs, "one"), scores(one, inputs, "one"));
  EXPECT_NE(found[0], found[size_t{21} * 2]) << "rows that differ in `a` alone";
}

}  // namespace
}  // namespace cafetiere
