// SPDX-License-Identifier: Apache-2.0
// The C interface for commands that go through it: its errors as Status, its objects with an owner.
#pragma once

#include <memory>
#include <string>

#include "cafetiere/c_api.h"
#include "core/base/status.h"

namespace cafetiere {

/// What a function of the interface gave back.
inline Status checked(int code) {
  return code == CFT_OK ? Status() : Status(ErrorCode(code), cft_last_error());
}

struct DestroyHandle {
  void operator()(cft_table* table) const { cft_table_destroy(table); }
  void operator()(cft_rows* rows) const { cft_rows_destroy(rows); }
  void operator()(cft_trainer* trainer) const { cft_trainer_destroy(trainer); }
  void operator()(cft_predictor* predictor) const { cft_predictor_destroy(predictor); }
};

/// Owns an object of the interface.
template <class T>
using Handle = std::unique_ptr<T, DestroyHandle>;

/// The text that `call` hands out to the address it is given.
template <class Call>
Result<std::string> handed_text(const Call& call) {
  char* out = nullptr;
  CFT_TRY(checked(call(&out)));
  std::string text(out);
  cft_free(out);
  return text;
}

/// The bytes that `call` hands out, with their number.
template <class Call>
Result<std::string> handed_bytes(const Call& call) {
  void* out = nullptr;
  uint64_t size = 0;
  CFT_TRY(checked(call(&out, &size)));
  std::string bytes(static_cast<const char*>(out), size);
  cft_free(out);
  return bytes;
}

}  // namespace cafetiere
