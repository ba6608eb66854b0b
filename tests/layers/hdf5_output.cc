// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "core/model/hdf5.h"
#include "tests/layers/harness.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string output_layer(const std::string& file, const std::string& bottoms = "") {
  return layer("HDF5Output", bottoms.empty() ? "bottom: 'x' bottom: 'label'" : bottoms,
               "hdf5_output_param { file_name: '" + file + "' }");
}

TEST(HDF5Output, WritesBatchAfterBatch) {
  const TempDir dir;
  const std::string file = dir.path("out.h5");
  auto net =
      TestNet::build(input("x", {2, 3}) + input("label", {2}) + output_layer(file), caffe::TEST);
  ASSERT_TRUE(net.ok()) << net.status().message();
  const auto device = make_cpu_device();
  ThreadPool pool(1);
  // Two plans of one net, of two rows and of one, write to the same file.
  for (const int64_t batch : {2, 1}) {
    auto plan = (*net)->plan(*device, batch);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    for (const Plan::Blob& blob : (*plan)->inputs()) {
      for (int64_t i = 0; i < blob.shape.count(); ++i) blob.data[i] = float(10 * batch + i);
    }
    EXPECT_EQ(std::filesystem::exists(file), batch == 1) << "only a run makes it";
    EXPECT_TRUE((*plan)->run_forward(pool, {}).ok());
  }
  net->reset();  // closes the file
  auto read = Hdf5Reader::open_file(file);
  ASSERT_TRUE(read.ok()) << read.status().message();
  auto data = read->floats("data"), label = read->floats("label");
  ASSERT_TRUE(data.ok() && label.ok());
  EXPECT_EQ(data->shape, (Shape{3, 3, 1, 1}));
  EXPECT_THAT(data->values, ElementsAre(20, 21, 22, 23, 24, 25, 10, 11, 12));
  EXPECT_EQ(label->shape, (Shape{3, 1, 1, 1}));
  EXPECT_THAT(label->values, ElementsAre(20, 21, 10));
}

// A limit on the size of files stands in for a full disk.
TEST(HDF5Output, AFullDiskEndsTheRun) {
  const TempDir dir;
  auto net = TestNet::build(
      input("x", {64, 64}) + input("label", {64}) + output_layer(dir.path("out.h5")), caffe::TEST);
  ASSERT_TRUE(net.ok()) << net.status().message();
  const auto device = make_cpu_device();
  ThreadPool pool(1);
  auto plan = (*net)->plan(*device, 64);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{100'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  Status status;
  for (int batch = 0; batch < 100 && status.ok(); ++batch) {
    status = (*plan)->run_forward(pool, {.sub_step = batch});
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), ErrorCode::kIo);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("layer 'L'"), HasSubstr("out.h5")));
}

TEST(HDF5Output, Refusals) {
  const std::string inputs = input("x", {2, 3}) + input("label", {2});
  EXPECT_THAT(refusal(inputs + layer("HDF5Output", "bottom: 'x' bottom: 'label'")),
              AllOf(HasSubstr("net:3: layer 'L'"), HasSubstr("no file_name")));
  EXPECT_THAT(refusal(input("x", {2, 3}) + input("label", {3}) + output_layer("o.h5")),
              HasSubstr("2 rows of data, but 3 labels"));
  EXPECT_THAT(refusal(input("x", {2, 3}) + output_layer("o.h5", "bottom: 'x'")),
              HasSubstr("1 bottom(s) but takes exactly 2"));
  EXPECT_THAT(refusal(input("x", {2, 1, 1, 1, 1}) + input("label", {2}) + output_layer("o.h5")),
              HasSubstr("1 to 4 axes"));
  auto net = TestNet::build(inputs + output_layer("no/where.h5"), caffe::TEST);
  ASSERT_TRUE(net.ok()) << net.status().message();
  const auto device = make_cpu_device();
  ThreadPool pool(1);
  auto plan = (*net)->plan(*device, 0);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_THAT((*plan)->run_forward(pool, {}).message(),
              AllOf(HasSubstr("no/where.h5"), HasSubstr("cannot create")));
}

}  // namespace
}  // namespace cafetiere
