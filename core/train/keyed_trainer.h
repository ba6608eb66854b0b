// SPDX-License-Identifier: Apache-2.0
// KeyedTrainer: small nets in great number, one after another, each on rows of its own.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "core/base/thread_pool.h"
#include "core/data/row_table.h"
#include "core/device/device.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Trains nets for tables (model/table_net.h) to the bits of a Trainer with one shard, on the calling
/// thread. What nets of the same shapes share is made once: graph, first weights, plans. Those of the
/// forms used last are kept, so that the memory goes by the largest table and not by their number.
class KeyedTrainer {
 public:
  struct Options {
    caffe::SolverParameter solver;
    int64_t epochs = 0;  ///< passes over a table; 0: the solver's max_iter
    uint64_t seed = 1;   ///< where the solver has no random_seed
  };
  struct Trained {
    std::string model;  ///< the weights, as a caffemodel
    double loss = 0;    ///< of the last step
    int64_t rows = 0, steps = 0;
  };

  /// Refuses what it does not do as a Trainer would: clipping, iter_size, modes without a common step.
  static Result<std::unique_ptr<KeyedTrainer>> create(Options options);
  ~KeyedTrainer();

  /// Trains `net` on `rows`. After an error others may be trained.
  Result<Trained> train(const caffe::NetParameter& net, RowTable&& rows);

  /// Forms that are kept, for tests.
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
  std::list<std::unique_ptr<Form>> forms_;  // the one used last first
};

}  // namespace cafetiere
