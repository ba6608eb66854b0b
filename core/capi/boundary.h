// SPDX-License-Identifier: Apache-2.0
// The boundary of the C interface: nothing throws across it, and every error leaves a text.
#pragma once

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "cafetiere/c_api.h"
#include "core/base/status.h"

namespace cafetiere::capi {

/// Keeps a status as the calling thread's last error and returns its code.
int finish(const Status& status);

/// What this processor lacks of the engine's instructions, as an error text; null if nothing.
const char* missing_feature();

/// Runs `body` (which returns a Status) so that no exception passes.
template <class F>
int guarded(const F& body) {
  if (const char* lack = missing_feature()) return finish({ErrorCode::kInvalidArgument, lack});
  try {
    return finish(body());
  } catch (const std::bad_alloc&) {
    return finish({ErrorCode::kOutOfMemory, "out of memory"});
  } catch (const std::exception& e) {
    return finish({ErrorCode::kInternal, e.what()});
  }
}

/// A copy for the caller, to be freed with cft_free().
inline Status give_bytes(const std::string& bytes, void** out, uint64_t* size) {
  void* memory = std::malloc(bytes.size() + 1);
  if (!memory) return {ErrorCode::kOutOfMemory, "out of memory"};
  std::memcpy(memory, bytes.c_str(), bytes.size() + 1);
  *out = memory;
  if (size) *size = bytes.size();
  return {};
}

inline Status give_text(const std::string& text, char** out) {
  return give_bytes(text, reinterpret_cast<void**>(out), nullptr);
}

}  // namespace cafetiere::capi
