#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/hdf5.h"
#include "tests/data/temp_dir.h"
#include "tests/layers/harness.h"

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
    (*plan)->run_forward(pool, {});
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
  EXPECT_THAT((*net)->plan(*device, 0).status().message(),
              AllOf(HasSubstr("no/where.h5"), HasSubstr("cannot create")));
}

}  // namespace
}  // namespace cafetiere
