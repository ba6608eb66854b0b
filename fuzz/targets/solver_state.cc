// SPDX-License-Identifier: Apache-2.0
// A binary solver state; one that can be read is the same after a way through both forms.
#include "core/model/solver_state.h"

#include <cstdlib>
#include <cstring>

#include "fuzz/targets.h"

namespace cafetiere::fuzz {
namespace {

/// Equal, values by their bytes: NaN is as good as any.
bool same(const SolverState& a, const SolverState& b) {
  if (a.iter != b.iter || a.learned_net != b.learned_net || a.current_step != b.current_step ||
      a.history.size() != b.history.size()) {
    return false;
  }
  for (size_t i = 0; i < a.history.size(); ++i) {
    const HistoryBlob &x = a.history[i], &y = b.history[i];
    if (x.shape != y.shape || x.values.size() != y.values.size()) return false;
    if (!x.values.empty() &&
        std::memcmp(x.values.data(), y.values.data(), x.values.size() * sizeof(float)) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

void solver_state(std::string_view bytes) {
  const auto state = parse_solver_state(std::as_bytes(std::span(bytes)));
  if (!state.ok()) return;
  for (const ModelFormat format : {ModelFormat::kBinary, ModelFormat::kHdf5}) {
    const auto written = serialize_solver_state(*state, format);
    if (!written.ok()) continue;  // HDF5 holds no name with a zero byte, for one
    const auto read = parse_solver_state(std::as_bytes(std::span(*written)));
    if (!read.ok() || !same(*state, *read)) std::abort();
  }
}

}  // namespace cafetiere::fuzz
