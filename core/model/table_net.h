// SPDX-License-Identifier: Apache-2.0
// A net for the columns of a table: numbers and embedded categories, hidden layers, scores.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The columns to predict, and those that weight the rows.
struct TableTarget {
  /// One CLASS, one FLAGS, or numbers.
  std::vector<caffe::TableDataParameter::Column> labels;
  /// Any number of WEIGHT columns; a row's weight is their product.
  std::vector<caffe::TableDataParameter::Column> weights;
};

struct TableNetOptions {
  std::vector<int64_t> layers{64, 32};  ///< units per hidden layer; empty = a linear model
  std::string activation = "ReLU";      ///< a layer type with one bottom and one top
  float dropout = 0;                    ///< fraction of units dropped from each hidden layer, in
                                        ///< [0, 1)
  bool batch_norm = false;              ///< between a hidden layer and its activation
  int64_t members = 1;                  ///< nets whose scores are averaged
  bool posterior = true;                ///< embeddings may end as posterior means (below)
  int64_t batch = 64;
  int64_t step_rows = 0;  ///< rows per step of all shards; 0: embeddings have the default decay
  std::map<std::string, double> rows_of_value = {};  ///< by column: average occurrences of a value
  /// Replaces `layers` unless empty: the first layer reads the blob "input", or is an Input layer,
  /// and the first top of the last one is the input of the scores. A net that ends in a Softmax
  /// with one output per class is the whole net.
  caffe::NetParameter hidden;
  std::string score = "score";   ///< name of the score layer; its blob is always "score"
  std::string loss = "squared";  ///< for numbers: "squared", "huber" or "quantile"
  float delta = 1;               ///< for "huber", in standard deviations of the label
  std::vector<float> quantiles;  ///< for "quantile", with a single number
};

/// A net that predicts the target from `features`: a CLASS by softmax, with its accuracy as a test;
/// FLAGS by a sigmoid cross-entropy for each; numbers, in their encoding, by a regression loss. The
/// numbers of all columns form the top "features". Each CATEGORY is embedded in min(50, 1.6 n^0.56)
/// dimensions, n being its number of indices (fast.ai's rule); the embeddings of several values in
/// a cell are summed and divided by their number plus one. A CATEGORY with many values and rows
/// (table_decay.h) first passes through its own hidden layers, of the same sizes; with `posterior`,
/// its rows end as posterior means (PosteriorParameter) if a cell has one value, the label is a CLASS
/// and there are neither weights nor several members. Several members share embeddings and
/// convolutions; each has its own hidden layers and scores, in layers "memberI/...", and the loss is
/// the mean of theirs (as in TabM, Gorishniy et al., 2024, which
/// shares more). In TEST, "score" is the mean of their scores, with its loss. An IMAGE is the
/// top "image/COLUMN"; convolutions and poolings turn it into numbers, unless the given layers read
/// it by this name; if it is the only column, it is their "input". Layers with the stage "predict"
/// output "probability", or "prediction" in the labels' own units: one value per number, or per
/// quantile. Errors: no columns, a label of another kind, sizes below 1, dropout outside [0, 1),
/// given layers without a top or with several members, an unknown loss or one that does not fit the
/// labels.
Result<caffe::NetParameter> table_net(std::span<const caffe::TableDataParameter::Column> features,
                                      const TableTarget& target, const TableNetOptions& options);

}  // namespace cafetiere
