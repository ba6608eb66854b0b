// SPDX-License-Identifier: Apache-2.0
// Snapshot files, named as Caffe names them.
#pragma once

#include <string>

#include "core/base/log.h"
#include "core/model/prototxt.h"
#include "core/train/trainer.h"

namespace cafetiere {

/// Where a training's snapshots go and in which format.
class Snapshots {
 public:
  /// Without a snapshot_prefix the solver's own path without its ending is used; a prefix that is a
  /// folder means files in it named after the solver. Refuses a place that cannot be written.
  static Result<Snapshots> make(const SolverText& solver, Logger log);

  /// Writes <prefix>_iter_<n>.caffemodel and .solverstate, each aside and renamed.
  Status write(const Checkpoint& checkpoint) const;

 private:
  Status check_writable() const;

  std::string prefix_;
  ModelFormat format_ = ModelFormat::kBinary;
  Logger log_;
};

/// A solver's state from a file and the weights that belong to it: those that it names, else those
/// beside it.
struct Snapshot {
  SolverState state;
  caffe::NetParameter weights;
};
Result<Snapshot> read_snapshot(const std::string& state_path);

/// Makes `trainer` go on from a .solverstate file and the weights that it names.
Status resume(Trainer& trainer, const std::string& state_path, const Logger& log);

}  // namespace cafetiere
