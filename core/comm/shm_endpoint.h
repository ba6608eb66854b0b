// SPDX-License-Identifier: Apache-2.0
// ShmEndpoint: a peer on the same host, reached through shared memory.
#pragma once

#include <memory>

#include "core/comm/framed_endpoint.h"
#include "core/comm/shm_link.h"

namespace cafetiere {

/// Bytes go through a ShmLink; a socket between the two ranks wakes a sleeping side, and its
/// closing shows that the peer is gone.
class ShmEndpoint : public FramedEndpoint {
 public:
  /// `socket` must be non-blocking, must outlive the endpoint, and is read only by the endpoint.
  ShmEndpoint(PeerName name, std::unique_ptr<ShmLink> link, int socket)
      : FramedEndpoint(std::move(name)), link_(std::move(link)), socket_(socket) {}

  std::string transport() const override { return "shared memory"; }
  Status release() override;
  Result<bool> settled() override;
  bool arm(std::vector<pollfd>* polls) override;
  void disarm() override;
  void give_up() override { link_->give_up(); }
  void lend(const std::shared_ptr<const SharedMemory>& memory) override { link_->lend(memory); }

 protected:
  Result<size_t> write(std::span<const iovec> parts) override;
  Result<size_t> read(std::span<const iovec> parts) override;
  Result<const void*> find_in_place(size_t bytes) override;

 private:
  Result<size_t> moved(size_t bytes);
  void wake_peer();
  Status lost() const;

  const std::unique_ptr<ShmLink> link_;
  const int socket_;
  bool armed_ = false;
  bool ended_ = false;  // the peer closed the socket
};

}  // namespace cafetiere
