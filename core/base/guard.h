// SPDX-License-Identifier: Apache-2.0
// guard: runs what may throw and gives a Status instead, for threads and for the C interface.
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include "core/base/status.h"

namespace cafetiere {

/// The error of a constructor, which cannot return one; guard() gives the Status back.
class StatusError : public std::exception {
 public:
  explicit StatusError(Status status) : status_(std::move(status)) {}
  const Status& status() const { return status_; }
  const char* what() const noexcept override { return status_.message().c_str(); }

 private:
  Status status_;
};

/// What the exception that is being handled says. Call it in a `catch (...)`. The unwinding of a
/// thread that ends itself goes on, as it must.
Status status_of_exception();

/// Calls `body`, which returns a Status or nothing; an exception becomes an error.
template <class F>
Status guard(F&& body) {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return {};
    } else {
      return body();
    }
  } catch (...) {
    return status_of_exception();
  }
}

}  // namespace cafetiere
