// SPDX-License-Identifier: Apache-2.0
#include "core/model/solver_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "core/model/hdf5.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

SolverState sample_state() {
  return {120, "model_iter_120.caffemodel", 2, {{{2, 2}, {1, 2, 3, 4}}, {Shape{}, {0.5F}}}};
}

TEST(SolverState, BothFormsGoBothWays) {
  for (ModelFormat format : {ModelFormat::kBinary, ModelFormat::kHdf5}) {
    auto bytes = serialize_solver_state(sample_state(), format);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    auto state = parse_solver_state(std::as_bytes(std::span(*bytes)));
    ASSERT_TRUE(state.ok()) << state.status().message();
    EXPECT_EQ(*state, sample_state());
  }
}

TEST(SolverState, BothFormsHoldWhatAModeAndEarlyStoppingKeep) {
  SolverState state = sample_state();
  state.stopping = {{{10, 0.1}, {20, std::numeric_limits<double>::infinity()}, {30, 1.0 / 3}},
                    {-1, 0.25F}};
  state.sync = {"diloco", {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}, {{9, 10}}};
  state.precision = "bf16x6";
  for (ModelFormat format : {ModelFormat::kBinary, ModelFormat::kHdf5}) {
    auto bytes = serialize_solver_state(state, format);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    auto read = parse_solver_state(std::as_bytes(std::span(*bytes)));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, state);
  }
}

TEST(SolverState, TestsWithoutABestOneAreKept) {
  SolverState state = sample_state();
  state.stopping.curve = {{10, -std::numeric_limits<double>::infinity()}};
  for (ModelFormat format : {ModelFormat::kBinary, ModelFormat::kHdf5}) {
    const auto bytes = serialize_solver_state(state, format);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const auto read = parse_solver_state(std::as_bytes(std::span(*bytes)));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, state);
  }
}

TEST(SolverState, ManyHistoryBlobsKeepTheirOrder) {
  SolverState many;
  for (int i = 0; i < 25; ++i) many.history.push_back({{1}, {static_cast<float>(i)}});
  auto bytes = serialize_solver_state(many, ModelFormat::kHdf5);
  ASSERT_TRUE(bytes.ok());
  auto state = parse_solver_state(std::as_bytes(std::span(*bytes)));
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(*state, many);
}

TEST(SolverState, FilesGoBothWaysAndErrorsNameThem) {
  const std::string path = ::testing::TempDir() + "cafetiere_state_test.solverstate";
  for (ModelFormat format : {ModelFormat::kBinary, ModelFormat::kHdf5}) {
    ASSERT_TRUE(write_solver_state(*source_of(sample_state()), path, format).ok());
    auto stored = open_solver_state(path);
    ASSERT_TRUE(stored.ok()) << stored.status().message();
    auto state = whole_state(**stored);
    ASSERT_TRUE(state.ok()) << state.status().message();
    EXPECT_EQ(*state, sample_state());
    std::remove(path.c_str());
  }
  const auto source = source_of(sample_state());
  EXPECT_THAT(write_solver_state(*source, "/no/such/folder/x", ModelFormat::kHdf5).message(),
              HasSubstr("make sure that the directory exists"));
  EXPECT_EQ(open_solver_state(path).status().message(), "File not found: " + path);
}

TEST(SolverState, DamageIsNoticed) {
  auto bytes = serialize_solver_state(sample_state(), ModelFormat::kBinary);
  ASSERT_TRUE(bytes.ok());
  bytes->pop_back();
  EXPECT_THAT(parse_solver_state(std::as_bytes(std::span(*bytes))).status().message(),
              HasSubstr("is not a solver state"));

  caffe::SolverState proto;
  proto.set_iter(1);
  proto.add_history()->mutable_shape()->add_dim(1000000);
  const std::string lies = proto.SerializeAsString();
  EXPECT_THAT(parse_solver_state(std::as_bytes(std::span(lies))).status().message(),
              HasSubstr("history blob 0"));
}

// Any file of weights parses as a state in which each field is unknown.
TEST(SolverState, WeightsAreNone) {
  caffe::NetParameter net;
  net.set_name("net");
  net.add_layer()->add_blobs()->add_data(1);
  const std::string weights = net.SerializeAsString();
  EXPECT_THAT(parse_solver_state(std::as_bytes(std::span(weights))).status().message(),
              HasSubstr("a caffemodel is given as weights"));
  EXPECT_FALSE(parse_solver_state({}).ok());
}

/// Counts what is read of a state, of which no piece may be long.
struct Numbers final : StateSource {
  Status read(const StateArray&, size_t begin, std::span<float> out) override {
    longest = std::max(longest, out.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = float(begin + i);
    return {};
  }
  size_t longest = 0;
};

TEST(SolverState, Hdf5IsWrittenAndReadInPieces) {
  const std::string path = ::testing::TempDir() + "cafetiere_state_pieces.solverstate.h5";
  Numbers numbers;
  constexpr int64_t kRows = 1000, kColumns = 2501;  // no whole number of rows makes a piece
  numbers.outline.history = {{kRows, kColumns}, Shape{}, {0, 3}};
  numbers.outline.mode = "average";
  numbers.outline.replicas = {{3}, {kHdf5PieceFloats + 1}};
  ASSERT_TRUE(write_solver_state(numbers, path, ModelFormat::kHdf5).ok());
  EXPECT_EQ(numbers.longest, kHdf5PieceFloats);
  const auto stored = open_solver_state(path);
  std::remove(path.c_str());
  ASSERT_TRUE(stored.ok()) << stored.status().message();
  EXPECT_EQ((*stored)->outline.replicas, numbers.outline.replicas);
  const auto expect_floats = [&](const StateArray& array, size_t begin, size_t count) {
    std::vector<float> values(count);
    const Status status = (*stored)->read(array, begin, values);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], float(begin + i));
  };
  for (const size_t begin : {size_t{0}, size_t{1}, size_t{2501}, size_t{2503}, size_t{2'500'000}}) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{999}}) {
      expect_floats({StateArray::kHistory, 0}, begin, count);
    }
  }
  expect_floats({StateArray::kHistory, 0}, 1234, size_t(kRows * kColumns) - 1234);
  expect_floats({StateArray::kHistory, 1}, 0, 1);
  expect_floats({StateArray::kReplica, 0, 1}, 5, kHdf5PieceFloats - 4);
  std::vector<float> none(2);
  EXPECT_THAT((*stored)->read({StateArray::kHistory, 1}, 0, none).message(),
              HasSubstr("does not hold the requested values"));
}

TEST(SolverState, TheBinaryFormIsMeasuredBeforeItIsMade) {
  Numbers numbers;
  numbers.outline.history = {{600, 1'000'000}};
  EXPECT_GT(binary_bytes(numbers.outline), size_t{600'000'000} * 4);
  EXPECT_THAT(serialize_solver_state(numbers, ModelFormat::kBinary).status().message(),
              HasSubstr("an HDF5 file holds more"));
  EXPECT_EQ(numbers.longest, 0U);
  const SolverState small = sample_state();
  EXPECT_GE(binary_bytes(source_of(small)->outline),
            serialize_solver_state(small, ModelFormat::kBinary)->size());
}

}  // namespace
}  // namespace cafetiere
