// SPDX-License-Identifier: Apache-2.0
#include "core/base/guard.h"

#include <cxxabi.h>

#include <new>
#include <stdexcept>

namespace cafetiere {
namespace {

/// The error, whose text may be too long for what memory is left.
Status error_or_memory(ErrorCode code, const char* what) {
  try {
    return {code, what};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::kOutOfMemory, "out of memory"};
  }
}

}  // namespace

Status status_of_exception() {
  try {
    throw;
  } catch (const abi::__forced_unwind&) {
    throw;  // pthread_exit(), as Python calls it in its daemon threads: it may not be held up
  } catch (const StatusError& e) {
    return error_or_memory(e.status().code(), e.what());
  } catch (const std::bad_alloc&) {
    return {ErrorCode::kOutOfMemory, "out of memory"};
  } catch (const std::length_error&) {  // of a container
    return {ErrorCode::kOutOfMemory,
            "out of memory: the requested size exceeds what a process can hold"};
  } catch (const std::exception& e) {
    return error_or_memory(ErrorCode::kInternal, e.what());
  } catch (...) {
    return error_or_memory(ErrorCode::kInternal,
                           "an exception that is not of the standard library");
  }
}

}  // namespace cafetiere
