// SPDX-License-Identifier: Apache-2.0
#include "core/model/upgrade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/prototxt.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NetText parsed(const std::string& text) {
  auto net = parse_net(text, "net");
  EXPECT_TRUE(net.ok()) << net.status().message();
  return net.ok() ? *net : NetText{};
}

/// Expects `text` to mean the same as `today`, which is in today's form.
void expect_upgrade(const std::string& text, const std::string& today) {
  EXPECT_EQ(to_text(parsed(text).param), to_text(parsed(today).param));
}

TEST(Upgrade, V1LayersBecomeLayers) {
  expect_upgrade(
      "name: 'n' layers { name: 'd' type: DATA top: 'data' include { phase: TRAIN }"
      "  data_param { source: 'db' scale: 0.5 mirror: true batch_size: 7 } }"
      "layers { name: 'c' type: CONVOLUTION bottom: 'data' top: 'c' blobs_lr: 1 blobs_lr: 2"
      "  weight_decay: 1 weight_decay: 0 param: 'w' param: 'b' blob_share_mode: PERMISSIVE"
      "  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: 'xavier' } } }"
      "layers { name: 'l' type: SOFTMAX_LOSS bottom: 'c' bottom: 'data' loss_weight: 3 }",

      "name: 'n' layer { name: 'd' type: 'Data' top: 'data' include { phase: TRAIN }"
      "  transform_param { scale: 0.5 mirror: true } data_param { source: 'db' batch_size: 7 } }"
      "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c'"
      "  param { name: 'w' share_mode: PERMISSIVE lr_mult: 1 decay_mult: 1 }"
      "  param { name: 'b' lr_mult: 2 decay_mult: 0 }"
      "  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: 'xavier' } } }"
      "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'c' bottom: 'data' loss_weight: 3 }");
}

TEST(Upgrade, EveryV1TypeHasAName) {
  const auto* types = caffe::V1LayerParameter::LayerType_descriptor();
  for (int i = 0; i < types->value_count(); ++i) {
    caffe::NetParameter net;
    net.add_layers()->set_type(
        static_cast<caffe::V1LayerParameter::LayerType>(types->value(i)->number()));
    ASSERT_TRUE(upgrade_net(&net).ok());
    EXPECT_EQ(net.layer(0).type().empty(), types->value(i)->name() == "NONE")
        << types->value(i)->name();
  }
}

TEST(Upgrade, V0LayersBecomeLayersAndPaddingIsMerged) {
  const std::string v0 =
      "input: 'data' input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8\n"
      "layers { layer { name: 'pad' type: 'padding' pad: 2 } bottom: 'data' top: 'pad' }\n"
      "layers { layer { name: 'conv' type: 'conv' num_output: 4 kernelsize: 5 stride: 2 group: 1\n"
      "  biasterm: false weight_filler { type: 'gaussian' std: 0.01 } blobs_lr: 1 }\n"
      "  bottom: 'pad' top: 'conv' }\n"
      "layers { layer { name: 'pool' type: 'pool' pool: AVE kernelsize: 3 }\n"
      "  bottom: 'conv' top: 'pool' }";
  expect_upgrade(
      v0,
      "layer { name: 'input' type: 'Input' top: 'data'"
      "  input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }"
      "layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'"
      "  param { lr_mult: 1 } convolution_param { num_output: 4 bias_term: false pad: 2"
      "  kernel_size: 5 group: 1 stride: 2 weight_filler { type: 'gaussian' std: 0.01 } } }"
      "layer { name: 'pool' type: 'Pooling' bottom: 'conv' top: 'pool'"
      "  pooling_param { pool: AVE kernel_size: 3 } }");
  EXPECT_THAT(parsed(v0).layer_lines, ElementsAre(1, 3, 6));
}

TEST(Upgrade, V0SaysWhatItCannotTakeOver) {
  auto net = parsed("layers { layer { name: 'r' type: 'relu' num_output: 3 } }");
  EXPECT_THAT(net.notes, ElementsAre("layer 'r': a relu layer has no num_output; ignored",
                                     "upgraded from the V0 form of layers"));
  EXPECT_THAT(parse_net("layers { layer { name: 'x' type: 'odd' } }", "n").status().message(),
              HasSubstr("Unknown layer name: odd (layer 'x')"));
  EXPECT_THAT(parse_net("layers { layer { name: 'p' type: 'padding' } bottom: 'a' top: 'p' }"
                        "layers { layer { name: 'r' type: 'relu' } bottom: 'p' top: 'r' }",
                        "n")
                  .status()
                  .message(),
              HasSubstr("padding layer 'p' feeds layer 'r'"));
}

TEST(Upgrade, InputFieldsBecomeOneInputLayerInFront) {
  const std::string text =
      "layer { name: 'r' type: 'ReLU' bottom: 'a' top: 'r' }\n"
      "input: 'a' input: 'b' input_shape { dim: 2 } input_shape { dim: 3 dim: 4 }";
  expect_upgrade(text,
                 "layer { name: 'input' type: 'Input' top: 'a' top: 'b'"
                 "  input_param { shape { dim: 2 } shape { dim: 3 dim: 4 } } }"
                 "layer { name: 'r' type: 'ReLU' bottom: 'a' top: 'r' }");
  EXPECT_THAT(parsed(text).layer_lines, ElementsAre(2, 1));
  expect_upgrade("input: 'a' layer { name: 'r' }", "layer { name: 'r' }");
  EXPECT_THAT(parse_net("input: 'a' input_dim: 1 input_dim: 2", "n").status().message(),
              HasSubstr("1 input fields but 2 input_dim"));
}

TEST(Upgrade, BatchNormStatisticsDoNotLearn) {
  expect_upgrade("layer { type: 'BatchNorm' param { lr_mult: 1 } param { } param { } }",
                 "layer { type: 'BatchNorm' param { lr_mult: 0 decay_mult: 0 }"
                 "  param { lr_mult: 0 decay_mult: 0 } param { lr_mult: 0 decay_mult: 0 } }");
}

}  // namespace
}  // namespace cafetiere
