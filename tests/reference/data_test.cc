// SPDX-License-Identifier: Apache-2.0
// Every data layer: the same files give the same batches as in the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "core/model/hdf5.h"
#include "tests/layers/harness.h"
#include "tests/reference/data_cases.h"
#include "tests/reference/own_net.h"

namespace cafetiere {
namespace {

using parity::Arrays;

const char* name_of(caffe::Phase phase) { return phase == caffe::TRAIN ? "TRAIN" : "TEST"; }

/// What our library reads: each top's batches behind each other.
Arrays read_here(const std::string& path, const DataNet& drawn) {
  OwnNet net(path, name_of(drawn.phase));
  if (!drawn.memory.empty()) net.feed(drawn.memory, drawn.memory_labels);
  Arrays out;
  for (int pass = 0; pass < drawn.passes; ++pass) {
    net.forward();
    for (const std::string& blob : net.outputs()) {
      const auto batch = net.data(blob);
      std::vector<float>& all = out["top_" + blob];
      all.insert(all.end(), batch.begin(), batch.end());
    }
  }
  return out;
}

/// The different rows, each with its label.
std::set<std::vector<float>> rows_of(const Arrays& arrays) {
  const std::vector<float>& data = arrays.at("top_data");
  const std::vector<float>& labels = arrays.at("top_label");
  const size_t size = data.size() / labels.size();
  std::set<std::vector<float>> rows;
  for (size_t i = 0; i < labels.size(); ++i) {
    std::vector<float> row(data.begin() + ptrdiff_t(i * size),
                           data.begin() + ptrdiff_t((i + 1) * size));
    row.push_back(labels[i]);
    rows.insert(std::move(row));
  }
  return rows;
}

class ReferenceData : public ::testing::TestWithParam<DataCase> {
 protected:
  void SetUp() override {
    if (!reference_is_there()) GTEST_SKIP() << "tools/reference_caffe has not been run";
  }

  /// One draw in both libraries. There is no rounding in which they could differ: bytes become floats,
  /// less a mean, times a scale.
  void compare(Draw& draw) {
    const TempDir folder;
    const DataNet drawn = GetParam().draw(draw, folder);
    SCOPED_TRACE(drawn.text);
    const std::string path = folder.path("net");
    write_text(path + ".prototxt",
               fmt::format("state {{ phase: {} }}\n{}", name_of(drawn.phase), drawn.text));
    Arrays request = {{"passes", {float(drawn.passes)}}};
    if (!drawn.memory.empty()) {
      request["memory"] = drawn.memory;
      request["memory_labels"] = drawn.memory_labels;
    }
    parity::write_arrays(path + ".in", request);
    ASSERT_EQ(run_reference({"data", path}), "");
    const Arrays theirs = parity::read_arrays(path + ".out");
    const Arrays ours = read_here(path + ".prototxt", drawn);
    if (drawn.as_sets) {
      RecordProperty("as_sets", 1);
      const auto rows = rows_of(ours);
      EXPECT_EQ(rows, rows_of(theirs)) << rows.size() << " different rows here";
      return;
    }
    for (const auto& [name, expected] : theirs) EXPECT_EQ(ours.at(name), expected) << name;
  }
};

TEST_P(ReferenceData, ReadsTheSame) {
  Draw draw(20260102);
  for (int i = 0; i < GetParam().draws && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(fmt::format("draw {}", i));
    compare(draw);
  }
  RecordProperty("draws", GetParam().draws);
}

std::string case_name(const ::testing::TestParamInfo<DataCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Layers, ReferenceData, ::testing::ValuesIn(data_cases()), case_name);

/// The datasets "data" and "label" that a library writes of two inputs.
std::vector<Hdf5Floats> written(const std::string& path) {
  auto file = Hdf5Reader::open_file(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  std::vector<Hdf5Floats> datasets;
  for (const char* name : {"data", "label"}) {
    auto dataset = file->floats(name);
    EXPECT_TRUE(dataset.ok()) << dataset.status().message();
    datasets.push_back(*std::move(dataset));
  }
  EXPECT_EQ(file->datasets("/").size(), 2U);
  return datasets;
}

/// One batch: the reference can write no second one.
TEST(ReferenceHdf5Output, WritesTheSameFile) {
  if (!reference_is_there()) GTEST_SKIP() << "tools/reference_caffe has not been run";
  const TempDir folder;
  const auto text = [&](const char* name) {
    return "state { phase: TEST } " +
           layer("DummyData", "name: 'D' top: 'x' top: 'y'",
                 "dummy_data_param { shape { dim: 3 dim: 2 dim: 5 } shape { dim: 3 } "
                 "data_filler { value: 0.5 } data_filler { value: 7 } }") +
           layer("HDF5Output", "bottom: 'x' bottom: 'y'",
                 fmt::format("hdf5_output_param {{ file_name: '{}' }}", folder.path(name)));
  };
  write_text(folder.path("ours.prototxt"), text("ours.h5"));
  write_text(folder.path("theirs.prototxt"), text("theirs.h5"));
  parity::write_arrays(folder.path("theirs.in"), {{"passes", {1}}});
  ASSERT_EQ(run_reference({"data", folder.path("theirs")}), "");
  OwnNet(folder.path("ours.prototxt"), "TEST").forward();
  const auto ours = written(folder.path("ours.h5")), theirs = written(folder.path("theirs.h5"));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(ours[i].shape, theirs[i].shape);
    EXPECT_EQ(ours[i].values, theirs[i].values);
  }
}

}  // namespace
}  // namespace cafetiere
