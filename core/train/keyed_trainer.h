// SPDX-License-Identifier: Apache-2.0
// KeyedTrainer: trains many small nets one after another, each on a separate set of rows.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>

#include "core/base/thread_pool.h"
#include "core/data/row_table.h"
#include "core/device/device.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Trains nets for tables (model/table_net.h) on the calling thread; the results are bitwise those
/// of a Trainer with one shard. Nets of the same shapes share graph, initial weights and plans.
/// Only the most recently used forms are kept, so memory depends on the largest table, not on the
/// number of tables.
class KeyedTrainer {
 public:
  struct Options {
    caffe::SolverParameter solver;
    int64_t epochs = 0;  ///< passes over the table; 0: the solver's max_iter
    uint64_t seed = 1;   ///< used if the solver has no random_seed
  };
  struct Trained {
    std::string model;  ///< the weights, as a caffemodel
    double loss = 0;    ///< loss of the last step
    int64_t rows = 0, steps = 0;
  };

  /// Rejects settings for which it would differ from a Trainer: clipping, iter_size, modes without
  /// a common step.
  static Result<std::unique_ptr<KeyedTrainer>> create(Options options);
  ~KeyedTrainer();

  /// Trains `net` on `rows`. After an error, other nets can still be trained.
  Result<Trained> train(const caffe::NetParameter& net, RowTable&& rows);

  /// Any thread: the net that is trained, and all after it, end with kCancelled.
  void cancel() { cancelled_ = true; }

  /// The number of cached forms, for tests.
  size_t forms() const { return forms_.size(); }

 private:
  struct Form;
  explicit KeyedTrainer(Options options);
  Result<Form*> form_of(const caffe::NetParameter& net, const RowSchema& schema);
  Result<std::unique_ptr<Form>> make_form(const caffe::NetParameter& net, const RowSchema& schema);

  Options options_;
  uint64_t seed_;
  std::unique_ptr<Device> device_;
  ThreadPool pool_{1};
  std::atomic<bool> cancelled_ = false;
  std::list<std::unique_ptr<Form>> forms_;  // most recently used first
};

}  // namespace cafetiere
