// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/model/blob.h"
#include "core/model/file.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string infogain_layer(const std::vector<int64_t>& dims, const std::vector<int64_t>& labels,
                           const std::vector<int64_t>& matrix, const std::string& fields = "",
                           const std::string& tops = "top: 'y'") {
  return input("x", dims) + input("label", labels) + input("H", matrix) +
         layer("InfogainLoss", "bottom: 'x' bottom: 'label' bottom: 'H' " + tops, fields);
}

std::string loss_from(const std::string& file) {
  return input("x", {4, 2}) + input("label", {4}) +
         layer("InfogainLoss", "bottom: 'x' bottom: 'label' top: 'y'",
               "infogain_loss_param { source: '" + file + "' }");
}

class InfogainFile : public ::testing::Test {
 protected:
  /// The path of a file with H, or with these bytes.
  std::string write(const std::vector<float>& values, const Shape& shape) {
    caffe::BlobProto blob;
    floats_to_blob(values, shape, &blob);
    return write(blob.SerializeAsString());
  }
  std::string write(const std::string& bytes) {
    EXPECT_TRUE(write_file(path_, bytes).ok());
    return path_;
  }
  void TearDown() override { std::filesystem::remove(path_); }

 private:
  std::string path_ = ::testing::TempDir() + "infogain_" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                      ".binaryproto";
};

TEST(InfogainLoss, Gradients) {
  check_layer({.layers = infogain_layer({4, 5}, {4}, {5, 5}), .batches = {}, .labels = 5});
  check_layer({.layers = infogain_layer({2, 3, 4}, {2, 4}, {3, 3}), .batches = {}, .labels = 3});
  check_layer({.layers = infogain_layer({2, 3, 4}, {2, 3}, {1, 1, 4, 4},
                                        "infogain_loss_param { axis: -1 }"),
               .batches = {},
               .labels = 4});
  for (const char* mode : {"FULL", "VALID", "BATCH_SIZE", "NONE"}) {
    check_layer({.layers = infogain_layer(
                     {2, 3, 4}, {2, 4}, {3, 3},
                     std::string("loss_param { ignore_label: 1 normalization: ") + mode + " }"),
                 .batches = {},
                 .labels = 3});
  }
  check_layer({.layers = infogain_layer({4, 5}, {4}, {5, 5}, "", "top: 'y' top: 'mask'"),
               .batches = {},
               .labels = 5});
}

TEST_F(InfogainFile, GivesTheMatrix) {
  check_layer({.layers = loss_from(write({0.5F, 0, 1, 2}, {2, 2})), .labels = 2});
}

TEST_F(InfogainFile, WithTheIdentityIsSoftmaxWithLoss) {
  const Figures inputs = {{"x", {1, 2, 3, 1, 0, 5, 2, 2}}, {"label", {0, 1, 1, 0}}};
  const std::string softmax = input("x", {4, 2}) + input("label", {4}) +
                              layer("SoftmaxWithLoss", "bottom: 'x' bottom: 'label' top: 'y'");
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures actual =
        evaluate(loss_from(write({1, 0, 0, 1}, {2, 2})), inputs, caffe::TRAIN, *device);
    Figures expected = evaluate(softmax, inputs, caffe::TRAIN, *device);
    expect_close(actual["y"], expected["y"], 1e-6, "y");
    expect_close(actual["x diff"], expected["x diff"], 1e-6, "x diff");
  }
}

TEST_F(InfogainFile, Refusals) {
  EXPECT_THAT(refusal(loss_from(write({1, 2, 3}, {3}))), HasSubstr("H must be 2 x 2"));
  EXPECT_THAT(refusal(loss_from(write("no message"))), HasSubstr("not a binary BlobProto"));
  EXPECT_THAT(refusal(loss_from("missing.binaryproto")),
              AllOf(HasSubstr("net:3: layer 'L'"), HasSubstr("missing.binaryproto")));
}

TEST(InfogainLoss, Refusals) {
  EXPECT_THAT(refusal(infogain_layer({4, 5}, {3}, {5, 5})),
              HasSubstr("one label for each of the 4"));
  EXPECT_THAT(refusal(infogain_layer({4, 5}, {4}, {5, 4})), HasSubstr("H must be 5 x 5"));
  EXPECT_THAT(refusal(infogain_layer({4, 5}, {4}, {5, 5}, "loss_param { normalize: true }")),
              HasSubstr("use normalization"));
  EXPECT_THAT(refusal(loss_from("")), HasSubstr("needs H"));
}

}  // namespace
}  // namespace cafetiere
