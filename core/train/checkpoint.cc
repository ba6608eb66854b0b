// SPDX-License-Identifier: Apache-2.0
#include "core/train/checkpoint.h"

#include "core/graph/arena.h"
#include "core/model/file.h"

namespace cafetiere {

bool Checkpoint::fits_binary() const {
  const auto most = static_cast<size_t>(kMaxFileBytes);
  return binary_bytes(graph, !moved.empty()) <= most && binary_bytes(state.outline) <= most;
}

Result<std::string> Checkpoint::model_bytes() const {
  return serialize_weights(to_weights(graph, weights, moved), ModelFormat::kBinary);
}

Result<std::string> Checkpoint::state_bytes() const {
  return serialize_solver_state(state, ModelFormat::kBinary);
}

Status Checkpoint::write_model(const std::string& model_path, ModelFormat format) const {
  if (format == ModelFormat::kHdf5) return write_hdf5_weights(graph, weights, moved, model_path);
  CFT_ASSIGN(const std::string bytes, model_bytes());
  return write_file(model_path, bytes);
}

Status Checkpoint::write_state(const std::string& state_path, const std::string& model_path,
                               ModelFormat format) const {
  state.outline.learned_net = model_path;
  return write_solver_state(state, state_path, format);
}

}  // namespace cafetiere
