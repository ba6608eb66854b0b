// SPDX-License-Identifier: Apache-2.0
// The boundary of the C interface: nothing throws across it, and every error leaves a text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "cafetiere/c_api.h"
#include "core/base/float_mode.h"
#include "core/base/guard.h"
#include "core/base/log.h"

namespace cafetiere::capi {

/// Keeps a status as the calling thread's last error and returns its code.
int finish(const Status& status);

/// What this processor lacks of the engine's instructions, as an error text; null if nothing.
const char* missing_feature();

/// Runs `body`, which returns a Status or nothing, so that no exception passes.
template <class F>
int guarded(const F& body) {
  if (const char* lack = missing_feature()) return finish({ErrorCode::kInvalidArgument, lack});
  const FloatMode mode(Denormals::kKept);
  return finish(guard(body));
}

/// An error that names the first null pointer among the arguments of a function of the interface.
/// `names`: what the caller calls them, with commas between.
Status not_null(const char* function, std::string_view names,
                std::initializer_list<const void*> pointers);

/// The bytes that a caller gave, never at null; an error where there are to be some and the pointer
/// is null.
inline Result<std::span<const std::byte>> given_bytes(const void* bytes, uint64_t size,
                                                      const char* name) {
  if (!bytes && size > 0) {
    return invalid_argument(std::string(name) + " is NULL and is to have " + std::to_string(size) +
                            " bytes");
  }
  return std::span(static_cast<const std::byte*>(bytes ? bytes : ""), size_t(size));
}

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// An error unless a struct of the interface called `name` may have this size: `least` bytes, or more
/// whole pointers, of which those from byte `known` to the end are zero.
Status check_struct(const char* name, const void* bytes, uint64_t size, uint64_t least,
                    uint64_t known);

/// A caller's struct: fields that its version of the header lacks are zero. All its fields are
/// pointers, `struct_size` and `context` the first; NULL gives one without any.
template <class T>
Result<T> given_struct(const T* given, const char* name) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(void*) == 0);
  T own{};
  if (given) {
    CFT_TRY(check_struct(name, given, given->struct_size, 2 * sizeof(void*), sizeof(T)));
    std::memcpy(&own, given, std::min<size_t>(given->struct_size, sizeof(T)));
  }
  own.struct_size = sizeof(T);
  return own;
}

/// A caller's function as a sink; none for NULL.
inline Logger::Sink sink_of(cft_log log, void* context) {
  if (!log) return {};
  return [log, context](LogLevel level, std::string_view text) {
    log(context, severity(level), std::string(text).c_str());
  };
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

/// JSON as text. Bytes that are not UTF-8, such as those of a Latin-1 layer name, are replaced.
std::string json_text(const nlohmann::json& json);
Status give_json(const nlohmann::json& json, char** out);

}  // namespace cafetiere::capi

/// Returns from a function of the interface with an error if one of these arguments is null.
#define CFT_NOT_NULL(...)                                                   \
  do {                                                                      \
    const ::cafetiere::Status cft_null =                                    \
        ::cafetiere::capi::not_null(__func__, #__VA_ARGS__, {__VA_ARGS__}); \
    if (!cft_null.ok()) return ::cafetiere::capi::finish(cft_null);         \
  } while (0)
