// SPDX-License-Identifier: Apache-2.0
// SocketEndpoint: a peer reached by TCP, plain or with TLS.
#pragma once

#include "core/comm/framed_endpoint.h"
#include "core/comm/stream.h"

namespace cafetiere {

class SocketEndpoint : public FramedEndpoint {
 public:
  /// `stream` must outlive the endpoint and is used by it only.
  SocketEndpoint(PeerName name, Stream* stream)
      : FramedEndpoint(std::move(name)), stream_(stream) {}

  std::string transport() const override { return stream_->encrypted() ? "TLS" : "TCP"; }
  bool arm(std::vector<pollfd>* polls) override;

 protected:
  Result<size_t> write(std::span<const iovec> parts) override;
  Result<size_t> read(std::span<const iovec> parts) override;
  size_t quantum() const override { return 1 << 20; }

 private:
  Result<size_t> moved(ssize_t result) const;

  Stream* const stream_;
};

}  // namespace cafetiere
