// SPDX-License-Identifier: Apache-2.0
// Small nets and their predictors, for tests of the C interface.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cafetiere/c_api.h"
#include "tests/capi/handed.h"
#include "tests/data/rows.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {

inline constexpr int64_t kChannels = 5, kSide = 12, kPixels = kChannels * kSide * kSide,
                         kScores = 10;

/// Channels that fill no vectors: a convolution of eight images or more lays them out otherwise than
/// one of fewer, and adds in another order.
inline constexpr const char* kNet = R"(
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
inline std::string filler_weights(const std::string& net_text) {
  const TempDir folder;  // not shared: tests run beside each other
  const std::string path = folder.path("weights.caffemodel");
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

/// `batch` 0 is the net's.
inline nlohmann::json options_of(const std::string& net, const char* output, int64_t batch) {
  return {{"net", net},
          {"schema", {{"columns", {{{"name", "data"}, {"type", "f32"}}}}, {"id", ""}}},
          {"inputs", {{{"top", "data"}, {"column", "data"}}}},
          {"outputs", {output}},
          {"batch", batch}};
}

inline std::unique_ptr<cft_predictor, Destroy> predictor_of(const nlohmann::json& options,
                                                            const std::string& net) {
  const std::string weights = filler_weights(net);
  cft_predictor* p = nullptr;
  EXPECT_EQ(cft_predictor_create(options.dump().c_str(), weights.data(), weights.size(), &p), 0)
      << cft_last_error();
  return std::unique_ptr<cft_predictor, Destroy>(p);
}

inline std::unique_ptr<cft_predictor, Destroy> predictor(const std::string& net, const char* output,
                                                         int64_t batch = 0) {
  return predictor_of(options_of(net, output, batch), net);
}

/// The outputs of `count` rows, one after another.
inline std::vector<float> run(cft_predictor* p, const RowBytes& rows, int64_t count) {
  const auto told = nlohmann::json::parse(handed_text(cft_predictor_describe, p));
  const int64_t size = told["outputs"][0]["size"];
  std::vector<float> values(size_t(count * size));
  float* const outputs[] = {values.data()};
  EXPECT_EQ(cft_predictor_run(p, count, rows.span().data(), rows.span().size(), outputs), 0)
      << cft_last_error();
  return values;
}

/// Two steps of one number for a batch of two streams, whose sequences never begin anew.
inline constexpr const char* kRecurrent = R"(
  layer { name: "in" type: "CoSData" top: "data" top: "cont"
    cos_data_param { batch_size: 2
      top { name: "data" type: FLOAT_ARRAY channels: 2 sample_num_axes: 1 transpose: true }
      top { name: "cont" type: FLOAT_ARRAY channels: 2 sample_num_axes: 1 transpose: true } } }
  layer { name: "deep" type: "Reshape" bottom: "data" top: "deep"
    reshape_param { shape { dim: 0 dim: 0 dim: 1 } } }
  layer { name: "lstm" type: "LSTM" bottom: "deep" bottom: "cont" top: "out"
    recurrent_param { num_output: 3 weight_filler { type: "uniform" min: -1 max: 1 } } })";

/// The options of a predictor for kRecurrent.
inline nlohmann::json recurrent_options() {
  nlohmann::json options = options_of(kRecurrent, "out", 0);
  options["schema"]["columns"].push_back({{"name", "cont"}, {"type", "f32"}});
  options["inputs"].push_back({{"top", "cont"}, {"column", "cont"}});
  return options;
}

inline RowBytes sequences(int64_t count) {
  RowBytes rows;
  for (int64_t i = 0; i < count; ++i) {
    rows.add_all(std::vector<float>{float(i + 1), -float(i)});
    rows.add_all(std::vector<float>{1, 1});
  }
  return rows;
}

}  // namespace cafetiere
