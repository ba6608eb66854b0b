// SPDX-License-Identifier: Apache-2.0
#include "core/train/snapshots.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "core/model/file.h"

namespace cafetiere {
namespace {

namespace fs = std::filesystem;

/// The weights of a state: the file it refers to, else a file of that name beside the state, else
/// the file named like the state.
std::string weights_of(const std::string& learned_net, const std::string& state_path) {
  const fs::path path(state_path);
  if (learned_net.empty()) {
    const bool hdf5 = path.extension() == ".h5";
    const fs::path stem = hdf5 ? path.stem().stem() : path.stem();
    return (path.parent_path() / stem).string() + (hdf5 ? ".caffemodel.h5" : ".caffemodel");
  }
  return find_beside(learned_net, state_path);
}

}  // namespace

Result<Snapshots> Snapshots::make(const SolverText& solver, Logger log) {
  const caffe::SolverParameter& p = solver.param;
  Snapshots snapshots;
  snapshots.log_ = std::move(log);
  const bool hdf5 = p.snapshot_format() == caffe::SolverParameter::HDF5;
  snapshots.format_ = hdf5 ? ModelFormat::kHdf5 : ModelFormat::kBinary;
  const fs::path source(solver.source);
  snapshots.prefix_ = p.snapshot_prefix();
  std::error_code ignored;
  if (p.snapshot_prefix().empty()) {
    snapshots.prefix_ = fs::path(source).replace_extension();
  } else if (fs::is_directory(p.snapshot_prefix(), ignored)) {
    snapshots.prefix_ = fs::path(p.snapshot_prefix()) / source.stem();
  }
  if (p.snapshot() > 0 || p.snapshot_after_train()) {
    CFT_TRY(snapshots.check_writable());
  }
  return snapshots;
}

Status Snapshots::check_writable() const {
  const std::string probe = prefix_ + "_iter_0.tempfile";
  if (!std::ofstream(probe).is_open()) {
    return io_error(
        fmt::format("Cannot write to snapshot prefix '{}'. Make sure that the "
                    "directory exists and is writable.",
                    prefix_));
  }
  std::error_code ignored;
  fs::remove(probe, ignored);
  return {};
}

Status Snapshots::write(const Checkpoint& checkpoint) const {
  const bool hdf5 = format_ == ModelFormat::kHdf5 || !checkpoint.fits_binary();
  const ModelFormat format = hdf5 ? ModelFormat::kHdf5 : ModelFormat::kBinary;
  if (format != format_) {
    log_.notice(
        "The snapshot of iteration {} is larger than the 2 GiB of the binary form, hence HDF5; set "
        "snapshot_format to HDF5 to have all of them so",
        checkpoint.step());
  }
  const std::string form = hdf5 ? "HDF5 file" : "binary proto file", end = hdf5 ? ".h5" : "";
  const std::string stem = fmt::format("{}_iter_{}", prefix_, checkpoint.step());
  const std::string model = stem + ".caffemodel" + end, state = stem + ".solverstate" + end;
  log_.info("Snapshotting to {} {}", form, model);
  CFT_TRY(checkpoint.write_model(model, format));
  log_.info("Snapshotting solver state to {} {}", form, state);
  return checkpoint.write_state(state, model, format);
}

Result<Snapshot> open_snapshot(const std::string& state_path) {
  CFT_ASSIGN(std::shared_ptr<StateSource> state, open_solver_state(state_path));
  Result<StoredWeights> weights =
      StoredWeights::open(weights_of(state->outline.learned_net, state_path));
  if (!weights.ok()) {
    return weights.status().with_context(fmt::format(
        "{} needs its weights, in the file that it names or in its own folder", state_path));
  }
  return Snapshot{std::move(state), *std::move(weights)};
}

Status resume(Trainer& trainer, const std::string& state_path, const Logger& log) {
  log.info("Resuming from {}", state_path);
  CFT_ASSIGN(const Snapshot snapshot, open_snapshot(state_path));
  log.info("Restoring previous solver status from {}", state_path);
  const Status status = trainer.restore(snapshot.weights, snapshot.state);
  if (!status.ok()) return status.with_context(state_path);
  log.info("{}Solver: restoring history", trainer.solver().type());
  return {};
}

}  // namespace cafetiere
