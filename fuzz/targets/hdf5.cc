// SPDX-License-Identifier: Apache-2.0
// An HDF5 file as weights, as a solver's state, and as a data layer reads it.
#include "core/model/hdf5.h"

#include "core/model/solver_state.h"
#include "core/model/weights.h"
#include "fuzz/targets.h"

void cafetiere::fuzz::hdf5(std::string_view bytes) {
  if (!is_hdf5(bytes)) return;  // other forms have targets of their own
  (void)parse_weights(std::as_bytes(std::span(bytes)));
  (void)parse_solver_state(std::as_bytes(std::span(bytes)));
  const auto file = Hdf5Reader::open(bytes, "file");
  if (!file.ok()) return;
  for (const std::string& name : file->datasets("/")) {
    (void)file->shape(name);
    (void)file->floats(name);
  }
}

/// The library itself loses some bytes for each damaged object; what we lose still counts.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:libhdf5\n";
}

/// It also asks for as much memory as a damaged object claims, and takes no for an answer.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
