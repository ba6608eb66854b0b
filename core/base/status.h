// SPDX-License-Identifier: Apache-2.0
// Status and Result: errors as values. What happened, where, and what to change.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cafetiere {

/// The kind of an error; decides whether a retry makes sense and which exception a binding throws.
enum class ErrorCode {
  kOk = 0,
  kInvalidArgument = 1,  ///< the user must change something; never retried
  kNotFound = 2,         ///< a file, layer, blob or column does not exist
  kIo = 3,               ///< the operating system refused a read or a write
  kUnavailable = 4,      ///< a peer or an executor is gone; a retry may succeed
  kTimeout = 5,          ///< a peer stayed silent; a retry may succeed
  kOutOfMemory = 6,      ///< an allocation failed or exceeds a stated limit
  kCancelled = 7,        ///< the caller asked to stop
  kInternal = 8,         ///< a broken invariant: a bug of this library
};

/// The outcome of an operation without a value. Cheap to return when it is a success.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == ErrorCode::kOk; }
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same error with "context: " put in front, so that messages read from outside to inside.
  Status with_context(std::string_view context) const {
    return ok() ? *this : Status(code_, std::string(context) + ": " + message_);
  }

 private:
  ErrorCode code_ = ErrorCode::kOk;
  std::string message_;
};

inline Status invalid_argument(std::string m) {
  return {ErrorCode::kInvalidArgument, std::move(m)};
}
inline Status not_found(std::string m) { return {ErrorCode::kNotFound, std::move(m)}; }
inline Status io_error(std::string m) { return {ErrorCode::kIo, std::move(m)}; }
inline Status unavailable(std::string m) { return {ErrorCode::kUnavailable, std::move(m)}; }
inline Status timeout_error(std::string m) { return {ErrorCode::kTimeout, std::move(m)}; }
inline Status internal_error(std::string m) { return {ErrorCode::kInternal, std::move(m)}; }

/// A value or the error that prevented it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit by design

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace cafetiere

#define CFT_CONCAT_INNER(a, b) a##b
#define CFT_CONCAT(a, b) CFT_CONCAT_INNER(a, b)

/// Returns from the enclosing function when `expr` (a Status) is an error.
#define CFT_TRY(expr)                                                \
  do {                                                               \
    if (::cafetiere::Status cft_status = (expr); !cft_status.ok()) { \
      return cft_status;                                             \
    }                                                                \
  } while (0)

/// Declares `lhs` from a Result, or returns its error: CFT_ASSIGN(auto net, load(path));
#define CFT_ASSIGN(lhs, expr) CFT_ASSIGN_IMPL(CFT_CONCAT(cft_result_, __LINE__), lhs, expr)
#define CFT_ASSIGN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                    \
  if (!tmp.ok()) return tmp.status();   \
  lhs = std::move(tmp).value()
