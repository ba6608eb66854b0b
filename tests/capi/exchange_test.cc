// SPDX-License-Identifier: Apache-2.0
// Nets and weights in other forms, and a net explained, through the C interface.
#include <gmock/gmock.h>

#include "tests/capi/handed.h"
#include "tests/capi/small_training.h"

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// The weights that a training of the small net begins with.
std::string first_weights() {
  cft_rounds* rounds = nullptr;
  const nlohmann::json options = {
      {"solver", kSmallSolver}, {"net", kSmallNet}, {"sync", "mode: 'average'"}};
  EXPECT_EQ(cft_rounds_create(options.dump().c_str(), &rounds), 0) << cft_last_error();
  std::string model = handed_bytes(cft_rounds_model, rounds);
  cft_rounds_destroy(rounds);
  return model;
}

/// The weights as safetensors, which hold floats and nothing that differs between two ways to a net.
std::string tensors_of(const std::string& model) {
  return handed_bytes(cft_weights_safetensors, model.data(), model.size());
}

TEST(Exchange, SafetensorsKeepEveryBit) {
  const std::string file = tensors_of(first_weights());
  EXPECT_THAT(file, HasSubstr("ip.1"));
  EXPECT_EQ(tensors_of(handed_bytes(cft_safetensors_weights, file.data(), file.size())), file);
  void* none = nullptr;
  uint64_t size = 0;
  EXPECT_EQ(cft_safetensors_weights("{", 1, &none, &size), CFT_INVALID_ARGUMENT);
}

TEST(Exchange, OnnxGoesOutAndComesBack) {
  const std::string model = first_weights();
  const nlohmann::json options = {{"net", kSmallNet}, {"shapes", {{"data", {2, 4, 1, 1}}}}};
  const std::string onnx =
      handed_bytes(cft_onnx_export, options.dump().c_str(), model.data(), model.size());
  char* net = nullptr;
  handed_bytes(cft_onnx_import, onnx.data(), onnx.size(), 1, &net);
  EXPECT_THAT(net, AllOf(HasSubstr("Softmax"), HasSubstr("num_output: 3"), Not(HasSubstr("Loss"))));
  cft_free(net);
  void* back = nullptr;
  uint64_t size = 0;
  EXPECT_EQ(cft_onnx_import(onnx.data(), onnx.size(), 0, &net, &back, &size), CFT_INVALID_ARGUMENT);
}

TEST(Exchange, OnnxRefusesANetWithoutItsWeights) {
  const std::string model = first_weights();
  std::string net = kSmallNet;
  net.replace(net.find("\"ip\""), 4, "\"other\"");
  const nlohmann::json options = {{"net", net}};
  void* onnx = nullptr;
  uint64_t size = 0;
  EXPECT_NE(cft_onnx_export(options.dump().c_str(), model.data(), model.size(), &onnx, &size), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("no weights for layer 'other'"));
  EXPECT_NE(cft_onnx_export(R"({"net": "", "shapes": {"data": [0]}})", nullptr, 0, &onnx, &size),
            0);
  EXPECT_THAT(cft_last_error(), HasSubstr("1 to 32 sizes"));
}

std::string explanation(const nlohmann::json& options) {
  return handed_text(cft_explain, options.dump().c_str());
}

TEST(Explain, TellsStepsAndMemory) {
  EXPECT_THAT(explanation({{"net", kSmallNet}, {"solver", kSmallSolver}}),
              AllOf(HasSubstr("small (phase TRAIN"), HasSubstr("ip forward"),
                    HasSubstr("history of SGD"), HasSubstr("15 parameters")));
}

TEST(Explain, DataThatAreNotThereAreGivenAShape) {
  std::string net = kSmallNet;
  net.replace(net.find("MemoryData"), 10, "Data");
  net.replace(net.find("memory_data_param { batch_size: 8 channels: 4 height: 1 width: 1 }"), 66,
              "data_param { batch_size: 8 source: 'nowhere' }");
  EXPECT_THAT(explanation({{"net", net}, {"shapes", {{"data", {4, 1, 1}}, {"label", {8}}}}}),
              AllOf(HasSubstr("note: layer 'rows' is not read"), HasSubstr("15 parameters")));
  char* out = nullptr;
  EXPECT_NE(cft_explain(nlohmann::json{{"net", net}}.dump().c_str(), &out), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("nowhere"));
}

}  // namespace
}  // namespace cafetiere
