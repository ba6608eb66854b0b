// SPDX-License-Identifier: Apache-2.0
// The HDF5 form of snapshots for those who write files themselves.
#include "core/capi/boundary.h"
#include "core/model/solver_state.h"
#include "core/model/weights.h"

using cafetiere::ModelFormat;
using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_weights_hdf5(const void* model, uint64_t model_bytes, void** out, uint64_t* bytes) {
  CFT_NOT_NULL(out, bytes);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto given, capi::given_bytes(model, model_bytes, "model"));
    CFT_ASSIGN(const caffe::NetParameter weights, cafetiere::parse_weights(given));
    CFT_ASSIGN(const std::string file, cafetiere::serialize_weights(weights, ModelFormat::kHdf5));
    return capi::give_bytes(file, out, bytes);
  });
}

int cft_state_hdf5(const void* state, uint64_t state_bytes, const char* learned_net, void** out,
                   uint64_t* bytes) {
  CFT_NOT_NULL(learned_net, out, bytes);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto given, capi::given_bytes(state, state_bytes, "state"));
    CFT_ASSIGN(cafetiere::SolverState parsed, cafetiere::parse_solver_state(given));
    parsed.learned_net = learned_net;
    CFT_ASSIGN(const std::string file,
               cafetiere::serialize_solver_state(parsed, ModelFormat::kHdf5));
    return capi::give_bytes(file, out, bytes);
  });
}
