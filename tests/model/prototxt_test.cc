// SPDX-License-Identifier: Apache-2.0
#include "core/model/prototxt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/model/nearest.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string net_error(const std::string& text) {
  auto net = parse_net(text, "lenet.prototxt");
  EXPECT_FALSE(net.ok()) << text;
  return net.status().message();
}

TEST(Prototxt, ReadsANetAndWhereItsLayersBegin) {
  auto net = parse_net(
      "name: \"LeNet\"  # a comment\n"
      "layer {\n  name: \"data\"\n  type: \"Input\"\n  top: \"data\"\n}\n"
      "\n"
      "  layer { name: \"conv1\" type: \"Convolution\" convolution_param { kernel_size: 5 } }\n",
      "lenet.prototxt");
  ASSERT_TRUE(net.ok()) << net.status().message();
  EXPECT_EQ(net->source, "lenet.prototxt");
  EXPECT_EQ(net->param.layer(1).convolution_param().kernel_size(0), 5U);
  EXPECT_THAT(net->layer_lines, ElementsAre(2, 8));
  EXPECT_TRUE(net->notes.empty());

  auto again = parse_net(to_text(net->param), "again");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(to_text(again->param), to_text(net->param));
}

TEST(Prototxt, AWrongFieldIsNamedWithItsPlaceAndTheRightOne) {
  EXPECT_EQ(net_error("layer {\n  convolution_param {\n    num_outputs: 20\n  }\n}\n"),
            "lenet.prototxt:3:5: ConvolutionParameter has no field \"num_outputs\"; did you mean "
            "\"num_output\"?");
  EXPECT_EQ(net_error("layer {\n  kernelsize\n\n  : 5\n}\n"),
            "lenet.prototxt:2:3: LayerParameter has no field \"kernelsize\"");
  EXPECT_EQ(net_error("layer { negative_slope: 5 }"),
            "lenet.prototxt:1:9: LayerParameter has no field \"negative_slope\"; ReLUParameter has "
            "one: write relu_param { negative_slope: ... }");
}

TEST(Prototxt, OtherMistakesSayWhatIsExpected) {
  EXPECT_EQ(net_error("layer {\n  pooling_param { pool: MAXX }\n}"),
            "lenet.prototxt:2:25: pool cannot be \"MAXX\"; it is one of AVE, MAX, STOCHASTIC");
  EXPECT_THAT(net_error("layer {\n  name: \"a\"\n"),
              StartsWith("lenet.prototxt:3:1: the text ends too early"));
  EXPECT_THAT(net_error("name: \"a\"\nname: \"b\"\n"), StartsWith("lenet.prototxt:2:"));
  EXPECT_THAT(net_error("name: \"a\n"), StartsWith("lenet.prototxt:1:"));
  EXPECT_THAT(net_error("layer { clip_param { min: 1 } }"), HasSubstr("layer[0].clip_param.max"));
  EXPECT_THAT(net_error(std::string("\x0a\x05LeNet\0", 8)), HasSubstr("is not text"));
  EXPECT_EQ(net_error("/nets/a.prototxt"),
            "lenet.prototxt: \"/nets/a.prototxt\" seems to be a path; give the text of that file");
  EXPECT_THAT(net_error("a.onnx"),
              HasSubstr("seems to be a path; read the model with import_onnx"));
  EXPECT_THAT(net_error("layer { } layers { }"), HasSubstr("both \"layer\" and \"layers\""));
}

TEST(Prototxt, HostileTextIsRefusedQuickly) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "layer {";
  EXPECT_FALSE(parse_net(deep, "deep").ok());
  EXPECT_FALSE(parse_net(std::string(1 << 20, '{'), "braces").ok());
  EXPECT_FALSE(parse_net("layer { " + std::string(1 << 20, 'x') + ": 1 }", "name").ok());
  EXPECT_FALSE(parse_net("[google.protobuf.Any] { }", "extension").ok());
}

TEST(Prototxt, AMissingFileIsNamed) {
  EXPECT_EQ(read_net("no/such.prototxt").status().message(), "File not found: no/such.prototxt");
  EXPECT_EQ(read_net("no/such.prototxt").status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(read_solver("nowhere").status().message(), "File not found: nowhere");
  EXPECT_THAT(read_net("/").status().message(), HasSubstr("is a directory"));
}

TEST(Prototxt, ReadsASolver) {
  auto solver = parse_solver("base_lr: 0.01 solver_type: ADAGRAD stepvalue: 1 stepvalue: 2", "s");
  ASSERT_TRUE(solver.ok()) << solver.status().message();
  EXPECT_EQ(solver->param.type(), "AdaGrad");
  EXPECT_FALSE(solver->param.has_solver_type());
  EXPECT_THAT(parse_solver("type: 'SGD' solver_type: SGD", "s").status().message(),
              HasSubstr("both solver_type and type"));
  EXPECT_EQ(parse_solver("\nbase_rl: 1", "s").status().message(),
            "s:2:1: SolverParameter has no field \"base_rl\"; did you mean \"base_lr\"?");
}

TEST(Prototxt, UpgradesTheNetsThatASolverHolds) {
  auto solver = parse_solver("net_param { layers { name: 'r' type: RELU } }", "s");
  ASSERT_TRUE(solver.ok()) << solver.status().message();
  EXPECT_EQ(solver->param.net_param().layer(0).type(), "ReLU");
  EXPECT_EQ(solver->notes.size(), 1U);
}

TEST(Nearest, FindsWhatIsCloseAndNothingElse) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("trian", "train"), 1);
  EXPECT_EQ(nearest_name("trian", {"test", "train"}), "train");
  EXPECT_EQ(nearest_name("Convolutoin", {"Concat", "Convolution"}), "Convolution");
  EXPECT_EQ(nearest_name("relu", {"ELU", "ReLU"}), "ReLU");
  EXPECT_EQ(nearest_name("bananas", {"Concat", "Convolution"}), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
}

}  // namespace
}  // namespace cafetiere
