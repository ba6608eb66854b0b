// SPDX-License-Identifier: Apache-2.0
// A net for the columns of a table: embedded categories beside numbers, hidden layers, scores.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// What the net is to learn, of what the columns are to tell.
struct TableTarget {
  /// One CLASS, one FLAGS, or numbers.
  std::vector<caffe::TableDataParameter::Column> labels;
  /// Any number of WEIGHT; a row counts as much as their product.
  std::vector<caffe::TableDataParameter::Column> weights;
};

struct TableNetOptions {
  std::vector<int64_t> layers{64, 32};  ///< units of the hidden layers; none = a linear model
  std::string activation = "ReLU";      ///< a layer type that has one bottom and one top
  float dropout = 0;                    ///< share of units left out of each hidden layer, in [0, 1)
  bool batch_norm = false;              ///< between a hidden layer and its activation
  int64_t batch = 64;
  int64_t step_rows = 0;  ///< of all shards; 0: embeddings decay as other weights do
  std::map<std::string, double> rows_of_value = {};  ///< by column: how often a value occurs
  /// In place of `layers`, if there are any: the first reads the blob "input", or an Input layer, and the
  /// first top of the last gives what the scores are made of. One that ends in Softmax, of as many numbers as
  /// there are classes, is the whole net.
  caffe::NetParameter hidden;
  std::string score = "score";   ///< name of the layer of the scores; their blob is "score" always
  std::string loss = "squared";  ///< of numbers: "squared", "huber" or "quantile"
  float delta = 1;               ///< of "huber", in deviations of the label
  std::vector<float> quantiles;  ///< of "quantile", of a single number
};

/// The net that learns the target from `features`: a CLASS by softmax, with its accuracy as a test; FLAGS
/// by the cross-entropy of a sigmoid each; numbers, as their encoding makes them, by a loss. Numbers of
/// all columns are the top "features"; each CATEGORY is embedded as min(50, 1.6 n^0.56) numbers, n being
/// its places (fast.ai's rule); those of several values in a cell are summed, over one more than their
/// number. One of many values and rows (table_decay.h) has hidden layers of its own, of the same sizes,
/// before the others. An IMAGE is the top "image/COLUMN", of which convolutions and poolings make numbers
/// beside the others, unless the given layers read it by this name; where it is the only column, it is their
/// "input".
/// Layers with the stage "predict" give "probability", or "prediction" in the labels' own units:
/// a number each, or each quantile.
/// Errors: no columns, a label of another kind, sizes below 1, dropout outside [0, 1), hidden layers
/// without a top, a loss that is not known or does not fit the labels.
Result<caffe::NetParameter> table_net(std::span<const caffe::TableDataParameter::Column> features,
                                      const TableTarget& target, const TableNetOptions& options);

}  // namespace cafetiere
