// SPDX-License-Identifier: Apache-2.0
// The nets that a solver names, with the solver's own batch.
#include "core/train/nets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cafetiere {
namespace {

constexpr const char* kNet = R"(
  layer { name: "images" type: "Data" top: "data" top: "label" include { phase: TRAIN }
    data_param { source: "db" batch_size: 64 } }
  layer { name: "points" type: "Input" top: "points" top: "weight"
    input_param { shape { dim: 64 dim: 3 } shape { dim: 64 } } }
  layer { name: "table" type: "TableData" top: "cells"
    table_data_param { batch_size: 64 } }
  layer { name: "ip" type: "InnerProduct" bottom: "points" top: "ip"
    inner_product_param { num_output: 3 } })";

SolverText solver_with(const std::string& fields) {
  return *parse_solver("base_lr: 0.1 lr_policy: 'fixed' " + fields, "solver.prototxt");
}

TEST(Nets, TheSolversBatchIsThatOfTheTrainingNetAlone) {
  const NetText net = *parse_net(kNet, "net");
  const SolverText solver = solver_with("batch_size: 7 test_iter: 1 test_interval: 10");
  const NetChoice trained = *training_net(solver, &net);
  EXPECT_EQ(trained.net.param.layer(0).data_param().batch_size(), 7u);
  EXPECT_EQ(trained.net.param.layer(1).input_param().shape(0).dim(0), 7);
  EXPECT_EQ(trained.net.param.layer(1).input_param().shape(0).dim(1), 3);
  EXPECT_EQ(trained.net.param.layer(1).input_param().shape(1).dim(0), 7);
  EXPECT_EQ(trained.net.param.layer(2).table_data_param().batch_size(), 7u);
  EXPECT_EQ(test_nets(solver, &net)->at(0).net.param.layer(0).data_param().batch_size(), 64u);
}

TEST(Nets, WithoutABatchInTheSolverThoseOfTheNetCount) {
  const NetText net = *parse_net(kNet, "net");
  const NetChoice trained = *training_net(solver_with(""), &net);
  EXPECT_EQ(trained.net.param.layer(0).data_param().batch_size(), 64u);
}

TEST(Nets, ANetWithoutABatchIsRefusedOne) {
  const NetText net = *parse_net(R"(
    layer { name: "zeros" type: "DummyData" top: "data" dummy_data_param { shape { dim: 2 } } })",
                                 "net");
  const Status status = training_net(solver_with("batch_size: 7"), &net).status();
  EXPECT_THAT(status.message(), testing::HasSubstr("no data layer that states a batch"));
}

}  // namespace
}  // namespace cafetiere
