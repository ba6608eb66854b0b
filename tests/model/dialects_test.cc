// SPDX-License-Identifier: Apache-2.0
#include "core/model/dialects.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <gtest/gtest.h>

#include "core/model/prototxt.h"
#include "core/model/weights.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

NetText dialect(const std::string& text) {
  auto net = parse_net(text, "net");
  EXPECT_TRUE(net.ok()) << net.status().message();
  return net.ok() ? *net : NetText{};
}

std::string error_of(const std::string& text) { return parse_net(text, "net").status().message(); }

/// Expects `text` to mean the same as `today`, which is in Caffe's words.
void expect_same(const std::string& text, const std::string& today) {
  EXPECT_EQ(to_text(dialect(text).param), to_text(dialect(today).param));
}

TEST(Dialects, WhatHasNoEffectIsIgnoredWithOneWarningEach) {
  const NetText net = dialect(
      "default_forward_type: FLOAT16 engine: 'MKLDNN'\n"
      "layer { name: 'c' forward_math: FLOAT16 convolution_param { num_output: 3\n"
      "  cudnn_convolution_algo_seeker: FINDEX } quantization_param { a { b: [1, 2] } c: 'x' } }\n"
      "layer { name: 'd' forward_math: FLOAT data_param { source: 's' threads: 4 cache: true } }");
  EXPECT_THAT(
      net.warnings,
      ElementsAre(
          HasSubstr("net:1: default_forward_type is ignored: everything is computed in"),
          HasSubstr("net:1: engine is ignored"), HasSubstr("net:2: forward_math is ignored"),
          HasSubstr("net:3: cudnn_convolution_algo_seeker"), HasSubstr("net:3: quantization_param"),
          HasSubstr("net:4: threads"), HasSubstr("net:4: cache")));
  EXPECT_EQ(net.param.layer(0).convolution_param().num_output(), 3U);
  EXPECT_THAT(net.layer_lines, ElementsAre(2, 4));
}

TEST(Dialects, AnyEngineIsIgnored) {
  const NetText net = dialect(
      "layer { name: 'MKL2017' pooling_param { engine: MKL2017 kernel_size: 2 } }\n"
      "layer { relu_param { engine: MKLDNN negative_slope: 1 } }\n"
      "layer { relu_param { engine: CAFFE } }\n"
      "layer { lrn_param { engine : MKL2017 } }");
  EXPECT_THAT(net.warnings, ElementsAre(HasSubstr("engine: MKL2017 is ignored"),
                                        HasSubstr("engine: MKLDNN is ignored")));
  EXPECT_EQ(net.param.layer(0).name(), "MKL2017");
  EXPECT_EQ(net.param.layer(0).pooling_param().kernel_size(), 2U);
  EXPECT_EQ(net.param.layer(1).relu_param().negative_slope(), 1);
  EXPECT_EQ(net.param.layer(2).relu_param().engine(), caffe::ReLUParameter::CAFFE);
  EXPECT_THAT(net.layer_lines, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(error_of("layer { relu_param { engine: A unknown: 1 } }"), HasSubstr("unknown"));
  std::string many;
  for (int i = 0; i < 20; ++i) many += "layer { lrn_param { engine: E" + std::to_string(i) + " } }";
  EXPECT_THAT(error_of(many), HasSubstr("engine cannot be \"E8\""));
}

TEST(Dialects, WhatChangesResultsIsRefusedWithAdvice) {
  EXPECT_THAT(error_of("layer { convolution_param { relu: true } }"),
              HasSubstr("no field \"relu\"; Intel's net compiler joined a ReLU"));
  EXPECT_THAT(
      error_of("layer { name: 'r' type: 'Region' bottom: 'x'\n region_param { } }"),
      HasSubstr("net:2:2: LayerParameter has no field \"region_param\"; Region: cut the net"));
  EXPECT_THAT(error_of("layer { type: 'Convolution' region_param { } }"),
              ::testing::Not(HasSubstr("cut the net")));
  EXPECT_THAT(error_of("layer { inner_product_param { num_output: cls21x } }"),
              HasSubstr("run its generator"));
  EXPECT_THAT(advice_on_type("ROIAlign"), HasSubstr("Python layer"));
  EXPECT_EQ(advice_on_type("Convolution"), "");
}

TEST(Dialects, AllUnknownFieldsAreNamed) {
  EXPECT_THAT(error_of("layer { one: 1 two { x: 1 } top: 't' }"),
              ::testing::AllOf(HasSubstr("\"one\""), HasSubstr("\"two\"")));
}

TEST(Dialects, CeilModeIsRoundMode) {
  expect_same("layer { pooling_param { ceil_mode: false } }",
              "layer { pooling_param { round_mode: FLOOR } }");
  expect_same("layer { pooling_param { ceil_mode: true } }",
              "layer { pooling_param { round_mode: CEIL } }");
  expect_same("layer { pooling_param { ceil_mode: false round_mode: FLOOR } }",
              "layer { pooling_param { round_mode: FLOOR } }");
  EXPECT_THAT(error_of("layer { name: 'p' pooling_param { ceil_mode: false round_mode: CEIL } }"),
              ::testing::AllOf(HasSubstr("layer 'p'"), HasSubstr("contradict each other")));
}

TEST(Dialects, HoleIsDilation) {
  expect_same("layers { name: 'c' type: CONVOLUTION convolution_param { hole: 2 } }",
              "layer { name: 'c' type: 'Convolution' convolution_param { dilation: 2 } }");
  expect_same("layer { convolution_param { hole_h: 2 hole_w: 3 } }",
              "layer { convolution_param { dilation: 2 dilation: 3 } }");
  expect_same("layer { convolution_param { dilation_w: 3 } }",
              "layer { convolution_param { dilation: 1 dilation: 3 } }");
  EXPECT_THAT(error_of("layer { convolution_param { hole: 2 dilation: 2 } }"),
              HasSubstr("mean the same"));
}

TEST(Dialects, DepthwiseTypesAreConvolutions) {
  expect_same("layer { type: 'DepthwiseConvolution' convolution_param { group: 4 } }",
              "layer { type: 'Convolution' convolution_param { group: 4 } }");
  expect_same("layer { type: 'ConvolutionDepthwise' convolution_param { num_output: 4 } }",
              "layer { type: 'Convolution' convolution_param { num_output: 4 depthwise: true } }");
  EXPECT_THAT(
      dialect("layer { type: 'DepthwiseConvolution' } layer { type: 'DepthwiseConvolution' }")
          .notes,
      ElementsAre("read DepthwiseConvolution as Convolution"));
}

TEST(Dialects, FasterRcnnsProposalIsTheEngines) {
  const std::string module =
      "type: 'Python' python_param { module: 'rpn.proposal_layer' layer: 'ProposalLayer' "
      "param_str: ";
  expect_same("layer { " + module + "\"'feat_stride': 8\" } }",
              "layer { type: 'Proposal' proposal_param { feat_stride: 8 } }");
  expect_same(
      "layer { " + module + R"("{\"feat_stride\": 16, 'scales': !!python/tuple [4, 8.5]}" } })",
      "layer { type: 'Proposal' proposal_param { feat_stride: 16 scale: 4 scale: 8.5 } }");
  expect_same("layer { " + module + R"("feat_stride: 16\nscales:\n  [2,\n  4]\n" } })",
              "layer { type: 'Proposal' proposal_param { feat_stride: 16 scale: 2 scale: 4 } }");
  expect_same("layer { " + module + R"("feat_stride: 8\nscales:\n- 2\n- 4\nother: 5" } })",
              "layer { type: 'Proposal' proposal_param { feat_stride: 8 scale: 2 scale: 4 } }");
  EXPECT_EQ(dialect("layer { type: 'Python' python_param { module: 'm' layer: 'ProposalLayer' } }")
                .param.layer(0)
                .type(),
            "Python");
}

TEST(Dialects, InputShapeStandsBesideInputDim) {
  expect_same("input: 'x' input_shape { dim: 2 dim: 3 } input_dim: 1 input_dim: 1",
              "input: 'x' input_shape { dim: 2 dim: 3 }");
}

caffe::BlobProto raw_blob(caffe::BlobProto::RawType type, const std::string& bytes, int64_t count) {
  caffe::BlobProto blob;
  blob.mutable_shape()->add_dim(count);
  blob.set_raw_data_type(type);
  blob.set_raw_data(bytes);
  return blob;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// A file with these blobs, read back.
caffe::NetParameter read_back(const caffe::LayerParameter& layer) {
  caffe::NetParameter net;
  *net.add_layer() = layer;
  const std::string file = net.SerializePartialAsString();
  auto read = parse_weights(std::as_bytes(std::span(file)));
  EXPECT_TRUE(read.ok()) << read.status().message();
  return read.ok() ? *read : caffe::NetParameter();
}

Floats floats(const caffe::BlobProto& blob) {
  Floats out(value_count(blob));
  const Status status = blob_to_floats(blob, *blob_shape(blob), out);
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

TEST(DialectWeights, RawBlobsOfEachFormat) {
  caffe::LayerParameter layer;
  layer.set_name("conv");
  *layer.add_blobs() = raw_blob(caffe::BlobProto::DOUBLE, bytes_of<double>({1.5, -2}), 2);
  *layer.add_blobs() = raw_blob(caffe::BlobProto::FLOAT, bytes_of<float>({1.5F, -2}), 2);
  // 1, -2, the largest, the smallest above 0, 0 and infinity.
  *layer.add_blobs() =
      raw_blob(caffe::BlobProto::FLOAT16,
               bytes_of<uint16_t>({0x3C00, 0xC000, 0x7BFF, 0x0001, 0x8000, 0x7C00}), 6);
  *layer.add_blobs() = raw_blob(caffe::BlobProto::INT, bytes_of<int32_t>({-3, 4}), 2);
  *layer.add_blobs() = raw_blob(caffe::BlobProto::UINT, bytes_of<uint32_t>({3, 4}), 2);
  const caffe::NetParameter net = read_back(layer);
  ASSERT_EQ(net.layer_size(), 1);
  EXPECT_THAT(floats(net.layer(0).blobs(0)), ElementsAre(1.5F, -2));
  EXPECT_THAT(floats(net.layer(0).blobs(1)), ElementsAre(1.5F, -2));
  EXPECT_THAT(floats(net.layer(0).blobs(2)), ElementsAre(1, -2, 65504, 5.9604644775390625e-8F, 0,
                                                         std::numeric_limits<float>::infinity()));
  EXPECT_THAT(floats(net.layer(0).blobs(3)), ElementsAre(-3, 4));
  EXPECT_THAT(floats(net.layer(0).blobs(4)), ElementsAre(3, 4));
  Floats two(2);
  const caffe::BlobProto cut = raw_blob(caffe::BlobProto::FLOAT, "abcdefg", 2);
  EXPECT_THAT(blob_to_floats(cut, {2}, two).message(), HasSubstr("damaged"));
  const caffe::BlobProto flags = raw_blob(caffe::BlobProto::BOOL, "ab", 2);
  EXPECT_THAT(blob_to_floats(flags, {2}, two).message(), HasSubstr("0 values"));
}

caffe::LayerParameter five(const std::vector<Floats>& blobs, bool four_axes) {
  caffe::LayerParameter layer;
  layer.set_name("bn");
  layer.set_type("BatchNorm");
  for (const Floats& blob : blobs) {
    const auto count = int64_t(blob.size());
    floats_to_blob(blob, four_axes ? Shape{1, count, 1, 1} : Shape{count}, layer.add_blobs());
  }
  return layer;
}

TEST(DialectWeights, FiveBlobsOfABatchNormInEitherOrder) {
  for (const bool four_axes : {false, true}) {
    const std::vector<Floats> later = {{1, 2}, {3, 4}, {1}, {5, 6}, {7, 8}};
    const std::vector<Floats> digits = {{5, 6}, {7, 8}, {1, 2}, {3, 4}, {1}};
    for (const std::vector<Floats>& order : {later, digits}) {
      const caffe::NetParameter net = read_back(five(order, four_axes));
      ASSERT_EQ(net.layer(0).blobs_size(), 5);
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(floats(net.layer(0).blobs(i)), later[size_t(i)]);
        EXPECT_EQ(*blob_shape(net.layer(0).blobs(i)), Shape{int64_t(later[size_t(i)].size())});
      }
    }
  }
}

// An HDF5 file has no types of layers: the sizes tell.
TEST(DialectWeights, FiveBlobsOfABatchNormInHdf5) {
  const auto stored = [](const std::vector<Floats>& blobs) {
    caffe::NetParameter written;
    *written.add_layer() = five(blobs, true);
    const auto bytes = serialize_weights(written, ModelFormat::kHdf5);
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    const auto net = parse_weights(std::as_bytes(std::span(*bytes)));
    EXPECT_TRUE(net.ok()) << net.status().message();
    std::vector<Floats> found;
    for (const caffe::BlobProto& blob : net->layer(0).blobs()) found.push_back(floats(blob));
    return found;
  };
  const std::vector<Floats> later = {{1, 2}, {3, 4}, {1}, {5, 6}, {7, 8}};
  EXPECT_EQ(stored(later), later);
  EXPECT_EQ(stored({{5, 6}, {7, 8}, {1, 2}, {3, 4}, {1}}), later);
  const std::vector<Floats> other = {{5, 6}, {7, 8}, {1, 2}, {3, 4}, {1, 1}};
  EXPECT_EQ(stored(other), other) << "no layer with such a fifth blob";
}

TEST(DialectWeights, ThreeBlobsStayAsTheyAre) {
  const caffe::NetParameter net = read_back(five({{1, 2}, {3, 4}, {5}}, false));
  EXPECT_THAT(floats(net.layer(0).blobs(2)), ElementsAre(5));
}

/// A layer with a field that has another meaning in a fork: `number`, as bytes and as a varint.
std::string with_number(int number, bool message) {
  namespace io = google::protobuf::io;
  using Wire = google::protobuf::internal::WireFormatLite;
  caffe::LayerParameter layer;
  layer.set_name("loss");
  floats_to_blob(Floats{9, 8}, {2}, layer.add_blobs());
  std::string bytes = layer.SerializeAsString();
  {
    io::StringOutputStream out(&bytes);
    io::StringOutputStream* const to = &out;
    io::CodedOutputStream coded(to);
    if (message) {  // { 1: 2.5 }, a sigma
      coded.WriteTag(Wire::MakeTag(number, Wire::WIRETYPE_LENGTH_DELIMITED));
      coded.WriteVarint32(5);
      coded.WriteTag(Wire::MakeTag(1, Wire::WIRETYPE_FIXED32));
      coded.WriteLittleEndian32(0x40200000);
    } else {
      coded.WriteTag(Wire::MakeTag(number, Wire::WIRETYPE_VARINT));
      coded.WriteVarint32(1);
    }
  }
  std::string net;
  io::StringOutputStream out(&net);
  io::CodedOutputStream coded(&out);
  coded.WriteTag(Wire::MakeTag(100, Wire::WIRETYPE_LENGTH_DELIMITED));
  coded.WriteVarint32(uint32_t(bytes.size()));
  coded.WriteString(bytes);
  return coded.HadError() ? "" : (coded.Trim(), net);
}

// 148 is Caffe's clip_param, whose min and max are required, and Intel's smooth_l1_loss_param.
TEST(DialectWeights, ReusedNumbersDoNoHarm) {
  for (const int number : {137, 138, 143, 144, 145, 146, 147, 148}) {
    for (const bool message : {true, false}) {
      const std::string file = with_number(number, message);
      const auto net = parse_weights(std::as_bytes(std::span(file)));
      ASSERT_TRUE(net.ok()) << number << ": " << net.status().message();
      ASSERT_EQ(net->layer_size(), 1) << number;
      EXPECT_EQ(net->layer(0).name(), "loss");
      EXPECT_THAT(floats(net->layer(0).blobs(0)), ElementsAre(9, 8)) << number;
    }
  }
}

}  // namespace
}  // namespace cafetiere
