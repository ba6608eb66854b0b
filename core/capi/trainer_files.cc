// SPDX-License-Identifier: Apache-2.0
// Checkpoints and results that are files, for what is too large for bytes.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/capi/boundary.h"
#include "core/capi/handles.h"
#include "core/model/weights.h"

namespace cafetiere::capi {

std::string snapshot_weights(const caffe::SolverParameter& solver, const Checkpoint& checkpoint,
                             std::string_view ending) {
  const std::string name = std::filesystem::path(solver.snapshot_prefix()).filename();
  if (!checkpoint.is_snapshot || name.empty()) return "";
  return fmt::format("{}_iter_{}.caffemodel{}", name, checkpoint.step(), ending);
}

Result<bool> give_checkpoint_files(cft_trainer* t, const Checkpoint& checkpoint) {
  const bool hdf5 = t->trainer->solver().snapshot_format() == caffe::SolverParameter::HDF5;
  if (t->checkpoint_folder.empty() || (!hdf5 && checkpoint.fits_binary())) return false;
  const std::string stem = fmt::format("{}/checkpoint-{}", t->checkpoint_folder, checkpoint.step());
  const std::string model = stem + ".caffemodel.h5", state = stem + ".solverstate.h5";
  CFT_TRY(checkpoint.write_model(model, ModelFormat::kHdf5));
  const std::string weights = snapshot_weights(t->trainer->solver(), checkpoint, ".h5");
  CFT_TRY(checkpoint.write_state(state, weights, ModelFormat::kHdf5));
  const nlohmann::json json{{"step", checkpoint.step()},
                            {"snapshot", checkpoint.is_snapshot},
                            {"model_file", model},
                            {"state_file", state}};
  const cft_callbacks& cb = t->callbacks;
  CFT_TRY(checkpoint_answer(
      cb.checkpoint(cb.context, json_text(json).c_str(), nullptr, 0, nullptr, 0)));
  return true;
}

}  // namespace cafetiere::capi

using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_trainer_restore_files(cft_trainer* t, const char* model, const char* state) {
  CFT_NOT_NULL(t, model);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto weights, cafetiere::StoredWeights::open(model));
    if (!state) return t->trainer->restore(weights).with_context(model);
    CFT_ASSIGN(auto stored, cafetiere::open_solver_state(state));
    return t->trainer->restore(weights, std::move(stored)).with_context(state);
  });
}

int cft_trainer_save(cft_trainer* t, const char* model, const char* state) {
  CFT_NOT_NULL(t, model);
  return capi::guarded([&] { return t->trainer->save(model, state ? state : ""); });
}
