// SPDX-License-Identifier: Apache-2.0
// Trainings of several ranks in one process, for comparing their bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/row_table.h"

namespace cafetiere {

inline constexpr int kRows = 10007;  // prime: every epoch ends in a short tail

inline constexpr const char* kSolver = R"(
  base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "inv" gamma: 0.0001 power: 0.75
  max_iter: 50 display: 1 random_seed: 7 clip_gradients: 1.5 iter_size: 2)";

inline constexpr const char* kLeNet = R"(
  name: "LeNet"
  layer { name: "mnist" type: "MemoryData" top: "data" top: "label"
    transform_param { scale: 0.00390625 }
    memory_data_param { batch_size: 32 channels: 1 height: 28 width: 28 } }
  layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
    param { lr_mult: 1 } param { lr_mult: 2 }
    convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } } }
  layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
    pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
  layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
    param { lr_mult: 1 } param { lr_mult: 2 }
    convolution_param { num_output: 50 kernel_size: 5 weight_filler { type: "xavier" } } }
  layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
    pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
  layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
    inner_product_param { num_output: 500 weight_filler { type: "xavier" } } }
  layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
  layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
    inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
  layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" })";

// Everything whose result could depend on who computes it: random masks, statistics of a batch,
// sums over neighbours, random crops and mirrors.
inline constexpr const char* kMixedNet = R"(
  name: "mixed"
  layer { name: "rows" type: "MemoryData" top: "data" top: "label"
    transform_param { scale: 0.01 mirror: true crop_size: 10 mean_value: 100 }
    memory_data_param { batch_size: 32 channels: 1 height: 12 width: 12 } }
  layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
    convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
  layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
  layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true } }
  layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
  layer { name: "norm1" type: "LRN" bottom: "conv1" top: "norm1"
    lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 } }
  layer { name: "pool1" type: "Pooling" bottom: "norm1" top: "pool1"
    pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
  layer { name: "drop1" type: "Dropout" bottom: "pool1" top: "pool1"
    dropout_param { dropout_ratio: 0.3 } }
  layer { name: "ip" type: "InnerProduct" bottom: "pool1" top: "ip"
    inner_product_param { num_output: 10 weight_filler { type: "gaussian" std: 0.05 } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";

/// What a training left.
struct Outcome {
  std::string model, state;
  std::vector<double> losses;
  std::vector<int64_t> rows_per_epoch;
};

/// A training on random images, `pixels` a row.
struct Job {
  const char* net;
  int pixels;
  int ranks = 1;
  int threads = 1;
  bool tcp = false;
  int max_iter = 50;
  const Outcome* from = nullptr;
  std::string solver = kSolver;
  int shards = 4;
  bool encrypt = false;        // with TCP, which then serves alone, without shared memory
  int rows = kRows;            // of all ranks
  std::string snapshots = {};  // prefix of those that the solver wants
  std::string resume = {};     // a solverstate to go on from
};

/// The rows that a rank brings.
RowTable part_of_rows(const Job& job, int rank);

/// Trains on all ranks, each in a thread; a failed rank fails the test.
Outcome train(const Job& job);

void expect_same(const Outcome& a, const Outcome& b, const std::string& what);

}  // namespace cafetiere
