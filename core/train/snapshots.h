// SPDX-License-Identifier: Apache-2.0
// Snapshot files, named as Caffe names them.
#pragma once

#include <memory>
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

  /// Writes <prefix>_iter_<n>.caffemodel and .solverstate, each aside and renamed; with .h5 where
  /// they are HDF5 files, as they also are when one of them is too large for the binary form.
  Status write(const Checkpoint& checkpoint) const;

 private:
  Status check_writable() const;

  std::string prefix_;
  ModelFormat format_ = ModelFormat::kBinary;
  Logger log_;
};

/// A solver's state and the weights that belong to it, those that it names, else those beside it:
/// read as needed, where they are HDF5 files.
struct Snapshot {
  std::shared_ptr<StateSource> state;
  StoredWeights weights;
};
Result<Snapshot> open_snapshot(const std::string& state_path);

/// Makes `trainer` go on from a .solverstate file and the weights that it names.
Status resume(Trainer& trainer, const std::string& state_path, const Logger& log);

}  // namespace cafetiere
