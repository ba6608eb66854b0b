// SPDX-License-Identifier: Apache-2.0
#include "core/model/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <random>

#include "core/model/file.h"
#include "core/model/hdf5.h"
#include "core/model/prototxt.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

caffe::NetParameter sample_net() {
  caffe::NetParameter net;
  net.set_name("sample");
  caffe::LayerParameter* conv = net.add_layer();
  conv->set_name("inception/3x3");
  floats_to_blob(Floats{1, 2, 3, 4, 5, 6}, {2, 3, 1, 1}, conv->add_blobs());
  floats_to_blob(Floats{-1, 0.5F}, {2}, conv->add_blobs());
  caffe::LayerParameter* first = net.add_layer();
  first->set_name("first");
  first->add_param()->set_name("shared");
  floats_to_blob(Floats{7}, Shape{}, first->add_blobs());
  caffe::LayerParameter* second = net.add_layer();
  *second = *first;
  second->set_name("second");
  net.add_layer()->set_name("relu");
  return net;
}

const caffe::LayerParameter* find(const caffe::NetParameter& net, const std::string& name) {
  for (const auto& layer : net.layer()) {
    if (layer.name() == name) return &layer;
  }
  return nullptr;
}

TEST(Weights, BinaryGoesBothWays) {
  auto bytes = serialize_weights(sample_net(), ModelFormat::kBinary);
  ASSERT_TRUE(bytes.ok());
  auto net = parse_weights(as_bytes(*bytes));
  ASSERT_TRUE(net.ok()) << net.status().message();
  EXPECT_EQ(to_text(*net), to_text(sample_net()));
}

TEST(Weights, Hdf5GoesBothWaysWithSlashesInNames) {
  auto bytes = serialize_weights(sample_net(), ModelFormat::kHdf5);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  auto net = parse_weights(as_bytes(*bytes));
  ASSERT_TRUE(net.ok()) << net.status().message();
  ASSERT_EQ(net->layer_size(), 4);
  const caffe::LayerParameter* conv = find(*net, "inception/3x3");
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(to_text(conv->blobs(0)), to_text(sample_net().layer(0).blobs(0)));
  EXPECT_EQ(to_text(conv->blobs(1)), to_text(sample_net().layer(0).blobs(1)));
  EXPECT_EQ(find(*net, "first")->blobs_size(), 1);
  EXPECT_EQ(find(*net, "second")->blobs_size(), 0) << "a shared parameter is stored once";
  EXPECT_EQ(find(*net, "relu")->blobs_size(), 0);
}

TEST(Weights, Hdf5LeavesOutABlobThatAnotherLayerOwns) {
  caffe::NetParameter net = sample_net();
  caffe::LayerParameter* second = net.mutable_layer(2);
  floats_to_blob(Floats{8, 9}, {2}, second->add_blobs());
  auto bytes = serialize_weights(net, ModelFormat::kHdf5);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  auto read = parse_weights(as_bytes(*bytes));
  ASSERT_TRUE(read.ok()) << read.status().message();
  const caffe::LayerParameter* layer = find(*read, "second");
  ASSERT_EQ(layer->blobs_size(), 2);
  EXPECT_FALSE(layer->blobs(0).has_shape());
  EXPECT_THAT(layer->blobs(1).data(), ElementsAre(8, 9));
}

TEST(Weights, Hdf5DatasetsOfALayerAreNumbers) {
  Hdf5Writer file;
  ASSERT_TRUE(file.floats("/data/ip/weight", {1}, Floats{1}).ok());
  const auto bytes = file.finish();
  ASSERT_TRUE(bytes.ok());
  EXPECT_THAT(parse_weights(as_bytes(*bytes)).status().message(),
              HasSubstr("/data/ip/weight: a dataset of a layer is called by a number"));
}

TEST(Weights, FilesAreToldApartByContent) {
  const std::string path = ::testing::TempDir() + "cafetiere_weights_test.caffemodel";
  for (ModelFormat format : {ModelFormat::kBinary, ModelFormat::kHdf5}) {
    ASSERT_TRUE(write_weights(sample_net(), path, format).ok());
    auto net = read_weights(path);
    ASSERT_TRUE(net.ok()) << net.status().message();
    EXPECT_EQ(net->layer_size(), 4);
  }
  std::remove(path.c_str());
  EXPECT_EQ(read_weights(path).status().message(), "File not found: " + path);
  EXPECT_THAT(write_weights(sample_net(), "/no/such/folder/x", ModelFormat::kBinary).message(),
              HasSubstr("make sure that the directory exists"));
  EXPECT_EQ(format_of_path("a.caffemodel.h5"), ModelFormat::kHdf5);
  EXPECT_EQ(format_of_path("a.caffemodel"), ModelFormat::kBinary);
}

TEST(Weights, OldFilesAreUpgraded) {
  caffe::NetParameter old;
  old.add_input("data");
  caffe::V1LayerParameter* layer = old.add_layers();
  layer->set_name("ip");
  layer->set_type(caffe::V1LayerParameter::INNER_PRODUCT);
  floats_to_blob(Floats{1, 2}, {2}, layer->add_blobs());
  auto net = parse_weights(as_bytes(old.SerializeAsString()));
  ASSERT_TRUE(net.ok());
  EXPECT_EQ(net->layer(0).type(), "InnerProduct");
  EXPECT_THAT(net->layer(0).blobs(0).data(), ElementsAre(1, 2));
}

TEST(Weights, UnpackedValuesAreRead) {
  // By hand: layer { name: "a" blobs { data: 1.5 data: 2.5 shape { dim: 2 } } }, nothing packed.
  const std::string floats("\x2d\x00\x00\xc0\x3f\x2d\x00\x00\x20\x40\x3a\x03\x0a\x01\x02", 15);
  const std::string layer = std::string("\x0a\x01") + "a" + "\x3a" + char(floats.size()) + floats;
  const std::string bytes = std::string("\xa2\x06") + char(layer.size()) + layer;
  auto net = parse_weights(as_bytes(bytes));
  ASSERT_TRUE(net.ok()) << net.status().message();
  Floats values(2);
  ASSERT_TRUE(blob_to_floats(net->layer(0).blobs(0), {2}, values).ok());
  EXPECT_THAT(values, ElementsAre(1.5F, 2.5F));
}

/// Reads many damaged copies of a file; must neither crash nor allocate what is not there.
void read_damaged(const std::string& good) {
  std::mt19937 engine(7);
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    for (int k = 0; k < 3; ++k) bad[engine() % bad.size()] = static_cast<char>(engine());
    auto net = parse_weights(as_bytes(bad));
    EXPECT_EQ(net.ok(), net.status().message().empty());
  }
}

TEST(Weights, DamagedFilesAreRefused) {
  for (ModelFormat format : {ModelFormat::kBinary, ModelFormat::kHdf5}) {
    auto good = serialize_weights(sample_net(), format);
    ASSERT_TRUE(good.ok());
    EXPECT_FALSE(parse_weights(as_bytes(good->substr(0, good->size() / 2))).ok());
    // In a process of its own that leaves without clean-up: the HDF5 library keeps pieces of some
    // damaged files and complains of them at exit.
    EXPECT_EXIT(
        {
          read_damaged(*good);
          _exit(HasFailure());
        },
        ::testing::ExitedWithCode(0), "");
  }
  EXPECT_THAT(parse_weights({}).status().message(), HasSubstr("is empty"));
  EXPECT_THAT(parse_weights(as_bytes("layer { name: \"x\" }")).status().message(),
              HasSubstr("is not a caffemodel"));
}

TEST(Blob, LegacyShapesFitRightAligned) {
  caffe::BlobProto blob;
  blob.set_num(1);
  blob.set_channels(1);
  blob.set_height(2);
  blob.set_width(3);
  EXPECT_TRUE(shape_equals(blob, {2, 3}));
  EXPECT_TRUE(shape_equals(blob, {1, 2, 3}));
  EXPECT_TRUE(shape_equals(blob, {1, 1, 2, 3}));
  EXPECT_FALSE(shape_equals(blob, {6}));
  EXPECT_FALSE(shape_equals(blob, {1, 1, 1, 2, 3}));
  EXPECT_FALSE(shape_equals(blob, {2, 1, 2, 3}));

  floats_to_blob(Floats{1, 2}, {1, 2}, &blob);
  EXPECT_TRUE(shape_equals(blob, {1, 2}));
  EXPECT_FALSE(shape_equals(blob, {2})) << "new shapes are compared as they are";
}

TEST(Blob, DoublesAreReadAndMismatchesNamed) {
  caffe::BlobProto blob;
  blob.mutable_shape()->add_dim(2);
  blob.add_double_data(0.25);
  blob.add_double_data(-3);
  Floats values(2);
  ASSERT_TRUE(blob_to_floats(blob, {2}, values).ok());
  EXPECT_THAT(values, ElementsAre(0.25F, -3));

  Floats three(3);
  EXPECT_EQ(blob_to_floats(blob, {3}, three).message(),
            "shape mismatch: the file has 2 (2), the net needs 3 (3)");
  blob.mutable_double_data()->RemoveLast();
  EXPECT_THAT(blob_to_floats(blob, {2}, values).message(), HasSubstr("1 values for shape 2 (2)"));
  blob.mutable_shape()->add_dim(int64_t{1} << 62);
  EXPECT_THAT(blob_shape(blob).status().message(), HasSubstr("impossible shape"));
}

}  // namespace
}  // namespace cafetiere
