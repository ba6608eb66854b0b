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
  /// Without a snapshot_prefix the solver's path without its extension is used; a prefix that is a
  /// folder means files in it named after the solver. An error if files cannot be written there.
  static Result<Snapshots> make(const SolverText& solver, Logger log);

  /// Writes <prefix>_iter_<n>.caffemodel and .solverstate, each to a temporary file that is
  /// renamed; with .h5 for HDF5 files, which are also used when one is too large for the binary
  /// format.
  Status write(const Checkpoint& checkpoint) const;

 private:
  Status check_writable() const;

  std::string prefix_;
  ModelFormat format_ = ModelFormat::kBinary;
  Logger log_;
};

/// A solver's state and its weights, those that it names, else those beside it. HDF5 files are read
/// as needed.
struct Snapshot {
  std::shared_ptr<StateSource> state;
  StoredWeights weights;
};
Result<Snapshot> open_snapshot(const std::string& state_path);

/// Restores `trainer` from a .solverstate file and the weights that it names.
Status resume(Trainer& trainer, const std::string& state_path, const Logger& log);

}  // namespace cafetiere
