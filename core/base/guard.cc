// SPDX-License-Identifier: Apache-2.0
#include "core/base/guard.h"

#include <cxxabi.h>

#include <new>

namespace cafetiere {
namespace {

/// The text may be too long for what memory is left.
Status internal_or_memory(const char* what) {
  try {
    return internal_error(what);
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
    return e.status();
  } catch (const std::bad_alloc&) {
    return {ErrorCode::kOutOfMemory, "out of memory"};
  } catch (const std::exception& e) {
    return internal_or_memory(e.what());
  } catch (...) {
    return internal_or_memory("an exception that is none of the standard library's");
  }
}

}  // namespace cafetiere
