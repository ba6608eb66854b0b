// SPDX-License-Identifier: Apache-2.0
// Snapshot files, named as Caffe names them.
#pragma once

#include <memory>
#include <string>

#include "core/base/log.h"
#include "core/model/prototxt.h"
#include "core/train/trainer.h"

namespace cafetiere {

/// The destination and format of a training run's snapshots.
class Snapshots {
 public:
  /// Without a snapshot_prefix, the solver's path without its extension is used; if the prefix is a
  /// folder, files in it are named after the solver. An error if files cannot be written there.
  static Result<Snapshots> make(const SolverText& solver, Logger log);

  /// Writes <prefix>_iter_<n>.caffemodel and .solverstate, each to a temporary file that is then
  /// renamed. HDF5 files end in .h5; they are also used if a file would be too large for the binary
  /// format.
  Status write(const Checkpoint& checkpoint) const;

 private:
  Status check_writable() const;

  std::string prefix_;
  ModelFormat format_ = ModelFormat::kBinary;
  Logger log_;
};

/// A solver's state and its weights: those it refers to, else those beside it. HDF5 files are read
/// as needed.
struct Snapshot {
  std::shared_ptr<StateSource> state;
  StoredWeights weights;
};
Result<Snapshot> open_snapshot(const std::string& state_path);

/// Restores `trainer` from a .solverstate file and the weights it refers to.
Status resume(Trainer& trainer, const std::string& state_path, const Logger& log);

}  // namespace cafetiere
