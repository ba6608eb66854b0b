// SPDX-License-Identifier: Apache-2.0
#include "core/train/checkpoint.h"

#include "core/graph/arena.h"
#include "core/model/file.h"

namespace cafetiere {
namespace {

/// What a solver can do about it.
Status advise(const Status& status) {
  if (status.code() != ErrorCode::kInvalidArgument) return status;
  return {status.code(), status.message() + ": set snapshot_format to HDF5"};
}

}  // namespace

Result<std::string> Checkpoint::model_bytes() const {
  return serialize_weights(to_weights(graph, weights, moved), ModelFormat::kBinary);
}

Result<std::string> Checkpoint::state_bytes() const {
  return serialize_solver_state(state, ModelFormat::kBinary);
}

Status Checkpoint::write_model(const std::string& model_path, ModelFormat format) const {
  if (format == ModelFormat::kHdf5) return write_hdf5_weights(graph, weights, moved, model_path);
  const Result<std::string> bytes = model_bytes();
  return bytes.ok() ? write_file(model_path, *bytes) : advise(bytes.status());
}

Status Checkpoint::write_state(const std::string& state_path, const std::string& model_path,
                               ModelFormat format) const {
  state.learned_net = model_path;
  const Status status = write_solver_state(state, state_path, format);
  return format == ModelFormat::kBinary ? advise(status) : status;
}

}  // namespace cafetiere
