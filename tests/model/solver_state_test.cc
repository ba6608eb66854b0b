// SPDX-License-Identifier: Apache-2.0
#include "core/model/solver_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(SolverState, BothFormsHoldWhatAModeKeeps) {
  SolverState state = sample_state();
  state.sync = {"diloco", {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}, {{9, 10}}};
  for (ModelFormat format : {ModelFormat::kBinary, ModelFormat::kHdf5}) {
    auto bytes = serialize_solver_state(state, format);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    auto read = parse_solver_state(std::as_bytes(std::span(*bytes)));
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
    ASSERT_TRUE(write_solver_state(sample_state(), path, format).ok());
    auto state = read_solver_state(path);
    ASSERT_TRUE(state.ok()) << state.status().message();
    EXPECT_EQ(*state, sample_state());
    std::remove(path.c_str());
  }
  EXPECT_THAT(write_solver_state(sample_state(), "/no/such/folder/x", ModelFormat::kHdf5).message(),
              HasSubstr("make sure that the directory exists"));
  EXPECT_EQ(read_solver_state(path).status().message(), "File not found: " + path);
}

TEST(SolverState, DamageIsNoticed) {
  auto bytes = serialize_solver_state(sample_state(), ModelFormat::kBinary);
  ASSERT_TRUE(bytes.ok());
  bytes->pop_back();
  EXPECT_THAT(parse_solver_state(std::as_bytes(std::span(*bytes))).status().message(),
              HasSubstr("is not a solver state"));

  caffe::SolverState proto;
  proto.add_history()->mutable_shape()->add_dim(1000000);
  const std::string lies = proto.SerializeAsString();
  EXPECT_THAT(parse_solver_state(std::as_bytes(std::span(lies))).status().message(),
              HasSubstr("history blob 0"));
}

}  // namespace
}  // namespace cafetiere
