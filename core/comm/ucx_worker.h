// SPDX-License-Identifier: Apache-2.0
// UcxWorker: this rank's UCX worker, which drives all its UcxEndpoints.
#pragma once

#include <poll.h>

#include <memory>
#include <span>
#include <vector>

#include "core/comm/ucx_library.h"

namespace cafetiere {

/// Used by one thread at a time. UCX chooses the transport according to its own environment
/// variables (UCX_TLS, UCX_NET_DEVICES).
class UcxWorker {
 public:
  /// kIo: UCX is not installed, or finds no usable transport. `peers` is a hint.
  static Result<std::shared_ptr<UcxWorker>> create(int peers);
  /// Closes the connections to the peers, waiting at most a tenth of a second.
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  const ucp::Library& library() const { return *library_; }
  ucp::Worker* get() const { return worker_; }
  std::string version() const { return library_->get_version_string(); }

  /// The address at which other ranks reach this one.
  Result<std::vector<std::byte>> address() const;

  /// Makes progress; returns whether anything was moved.
  bool progress() { return library_->worker_progress(worker_) > 0; }
  /// Makes progress until `done` returns true, for at most a tenth of a second; returns whether it
  /// did.
  template <class Done>
  bool progress_until(const Done& done);

  /// Like Endpoint::arm() and disarm(), for all endpoints together.
  bool arm(std::vector<pollfd>* polls);
  void disarm() { armed_ = false; }

  /// Closes the connection to a peer, in the background unless `at_once`.
  void close(ucp::Peer* peer, bool at_once);
  /// Destroys the worker: afterwards UCX does not access a request's memory, and requests are
  /// invalid.
  void destroy();

 private:
  UcxWorker(const ucp::Library* library, ucp::Context* context)
      : library_(library), context_(context) {}
  static bool expired(int64_t* since);

  const ucp::Library* const library_;
  ucp::Context* const context_;
  ucp::Worker* worker_ = nullptr;
  int fd_ = -1;
  bool armed_ = false, may_sleep_ = false;
  std::vector<void*> closing_;  // requests
};

template <class Done>
bool UcxWorker::progress_until(const Done& done) {
  int64_t since = 0;
  while (!done()) {
    if (!worker_ || expired(&since)) return false;
    progress();
  }
  return true;
}

}  // namespace cafetiere
