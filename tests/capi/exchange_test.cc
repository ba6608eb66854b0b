// SPDX-License-Identifier: Apache-2.0
// Nets and weights in other forms, and a net explained, through the C interface.
#include <gmock/gmock.h>

#include "tests/capi/small_training.h"

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Text or bytes of the library's.
struct Given {
  void* bytes = nullptr;
  uint64_t size = 0;
  ~Given() { cft_free(bytes); }
  std::string text() const { return {static_cast<const char*>(bytes), size}; }
};

/// The weights that a training of the small net begins with.
void first_weights(Given* model) {
  cft_rounds* rounds = nullptr;
  const nlohmann::json options = {
      {"solver", kSmallSolver}, {"net", kSmallNet}, {"sync", "mode: 'average'"}};
  ASSERT_EQ(cft_rounds_create(options.dump().c_str(), &rounds), 0) << cft_last_error();
  ASSERT_EQ(cft_rounds_model(rounds, &model->bytes, &model->size), 0) << cft_last_error();
  cft_rounds_destroy(rounds);
}

/// The weights as safetensors, which hold floats and nothing that differs between two ways to a net.
std::string tensors_of(const Given& model) {
  Given file;
  EXPECT_EQ(cft_weights_safetensors(model.bytes, model.size, &file.bytes, &file.size), 0)
      << cft_last_error();
  return file.text();
}

TEST(Exchange, SafetensorsKeepEveryBit) {
  Given model, back;
  first_weights(&model);
  const std::string file = tensors_of(model);
  EXPECT_THAT(file, HasSubstr("ip.1"));
  ASSERT_EQ(cft_safetensors_weights(file.data(), file.size(), &back.bytes, &back.size), 0)
      << cft_last_error();
  EXPECT_EQ(tensors_of(back), file);
  EXPECT_EQ(cft_safetensors_weights("{", 1, &back.bytes, &back.size), CFT_INVALID_ARGUMENT);
}

TEST(Exchange, OnnxGoesOutAndComesBack) {
  Given model, onnx, back;
  first_weights(&model);
  const nlohmann::json options = {{"net", kSmallNet}, {"shapes", {{"data", {2, 4, 1, 1}}}}};
  ASSERT_EQ(
      cft_onnx_export(options.dump().c_str(), model.bytes, model.size, &onnx.bytes, &onnx.size), 0)
      << cft_last_error();
  char* net = nullptr;
  ASSERT_EQ(cft_onnx_import(onnx.bytes, onnx.size, 1, &net, &back.bytes, &back.size), 0)
      << cft_last_error();
  EXPECT_THAT(net, AllOf(HasSubstr("Softmax"), HasSubstr("num_output: 3"), Not(HasSubstr("Loss"))));
  cft_free(net);
  EXPECT_EQ(cft_onnx_import(onnx.bytes, onnx.size, 0, &net, &back.bytes, &back.size),
            CFT_INVALID_ARGUMENT);
}

TEST(Exchange, OnnxRefusesANetWithoutItsWeights) {
  Given model, onnx;
  first_weights(&model);
  std::string net = kSmallNet;
  net.replace(net.find("\"ip\""), 4, "\"other\"");
  const nlohmann::json options = {{"net", net}};
  EXPECT_NE(
      cft_onnx_export(options.dump().c_str(), model.bytes, model.size, &onnx.bytes, &onnx.size), 0);
  EXPECT_THAT(cft_last_error(), HasSubstr("no weights for layer 'other'"));
  EXPECT_NE(cft_onnx_export(R"({"net": "", "shapes": {"data": [0]}})", nullptr, 0, &onnx.bytes,
                            &onnx.size),
            0);
  EXPECT_THAT(cft_last_error(), HasSubstr("1 to 32 sizes"));
}

std::string explanation(const nlohmann::json& options) {
  char* out = nullptr;
  EXPECT_EQ(cft_explain(options.dump().c_str(), &out), 0) << cft_last_error();
  const std::string text = out ? out : "";
  cft_free(out);
  return text;
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
