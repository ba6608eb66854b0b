// SPDX-License-Identifier: Apache-2.0
#include "core/comm/ucx_worker.h"

#include <fmt/format.h>

#include <chrono>

namespace cafetiere {
namespace {

constexpr unsigned kApiMajor = 1, kApiMinor = 10;
constexpr int64_t kCloseTimeout = 100'000'000;  // nanoseconds

Status ucx_error(const ucp::Library& library, const char* what, ucp::StatusCode status) {
  return io_error(fmt::format("UCX cannot {}: {}", what, library.status_string(status)));
}

}  // namespace

Result<std::shared_ptr<UcxWorker>> UcxWorker::create(int peers) {
  CFT_ASSIGN(const ucp::Library* const library, ucp::Library::find());
  ucp::Config* config = nullptr;
  if (const auto s = library->config_read(nullptr, nullptr, &config); s != ucp::kOk) {
    return ucx_error(*library, "read its settings", s);
  }
  ucp::Params params;
  params.field_mask = ucp::Params::kFeatures | ucp::Params::kNumEps;
  params.features = ucp::Params::kTag | ucp::Params::kWakeup;
  params.estimated_num_eps = static_cast<size_t>(peers);
  ucp::Context* context = nullptr;
  const auto made = library->init_version(kApiMajor, kApiMinor, &params, config, &context);
  library->config_release(config);
  if (made != ucp::kOk) return ucx_error(*library, "begin", made);
  std::shared_ptr<UcxWorker> worker(new UcxWorker(library, context));
  ucp::WorkerParams about;
  about.field_mask = ucp::WorkerParams::kThreadMode | ucp::WorkerParams::kFlags;
  about.thread_mode = ucp::WorkerParams::kSerialized;
  about.flags = ucp::WorkerParams::kIgnoreRequestLeak;  // requests cut off by destroy()
  if (const auto s = library->worker_create(context, &about, &worker->worker_); s != ucp::kOk) {
    worker->worker_ = nullptr;
    return ucx_error(*library, "make a worker", s);
  }
  if (const auto s = library->worker_get_efd(worker->worker_, &worker->fd_); s != ucp::kOk) {
    return ucx_error(*library, "wake a sleeper", s);
  }
  return worker;
}

UcxWorker::~UcxWorker() {
  progress_until([&] {
    std::erase_if(closing_, [&](void* request) {
      if (library_->request_check_status(request) > 0) return false;
      library_->request_free(request);
      return true;
    });
    return closing_.empty();
  });
  destroy();
  library_->cleanup(context_);
}

Result<std::vector<std::byte>> UcxWorker::address() const {
  void* address = nullptr;
  size_t bytes = 0;
  if (const auto s = library_->worker_get_address(worker_, &address, &bytes); s != ucp::kOk) {
    return ucx_error(*library_, "tell its address", s);
  }
  const auto* begin = static_cast<const std::byte*>(address);
  std::vector<std::byte> copy(begin, begin + bytes);
  library_->worker_release_address(worker_, address);
  return copy;
}

/// Arming the first endpoint arms all: UCX wakes up for any of them.
bool UcxWorker::arm(std::vector<pollfd>* polls) {
  if (!worker_) return false;
  if (!armed_) {
    armed_ = true;
    // UCX reports new events only: none may be pending when it is armed.
    may_sleep_ =
        library_->worker_progress(worker_) == 0 && library_->worker_arm(worker_) == ucp::kOk;
    polls->push_back({fd_, POLLIN, 0});
  }
  return may_sleep_;
}

void UcxWorker::close(ucp::Peer* peer, bool at_once) {
  if (!worker_) return;
  ucp::RequestParams params;
  params.mask = ucp::RequestParams::kFlags;
  params.flags = at_once ? ucp::RequestParams::kCloseAtOnce : 0;
  void* const request = library_->ep_close_nbx(peer, &params);
  if (request && !ucp::is_error(request)) closing_.push_back(request);
}

void UcxWorker::destroy() {
  for (void* request : closing_) library_->request_free(request);
  if (worker_) library_->worker_destroy(worker_);
  worker_ = nullptr;
  closing_.clear();
}

bool UcxWorker::expired(int64_t* since) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const int64_t ticks = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  if (*since == 0) *since = ticks;
  return ticks - *since > kCloseTimeout;
}

}  // namespace cafetiere
