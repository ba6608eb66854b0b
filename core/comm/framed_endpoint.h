// SPDX-License-Identifier: Apache-2.0
// FramedEndpoint: messages with headers, over a transport that delivers bytes in order.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/comm/endpoint.h"

namespace cafetiere {

/// No copies between buffers, and no allocations after the first rounds.
class FramedEndpoint : public Endpoint {
 public:
  explicit FramedEndpoint(PeerName name) : name_(std::move(name)) {}

  void send(const void* data, size_t bytes) override;
  void receive(void* data, size_t bytes, const void** in_place) override;
  bool sending() const override { return out_.busy(); }
  bool receiving() const override { return in_.busy(); }
  Result<Progress> progress() override;

 protected:
  /// Writes or reads as much of `parts`, the rest of a message or of its header and body, as is
  /// possible now; returns the number of bytes, possibly 0.
  virtual Result<size_t> write(std::span<const iovec> parts) = 0;
  virtual Result<size_t> read(std::span<const iovec> parts) = 0;
  /// The address of the next message's body if it can be read in place, else null; until release().
  virtual Result<const void*> find_in_place(size_t /*bytes*/) { return nullptr; }
  /// Bytes of a body after which it is the other direction's turn.
  virtual size_t quantum() const { return SIZE_MAX; }

  const PeerName& name() const { return name_; }

 private:
  struct FrameHeader {
    uint32_t magic;
    uint32_t sequence;  // per direction
    uint64_t bytes;
  };

  /// One direction: its messages in order, and the progress of the current one.
  struct Lane {
    std::vector<iovec> messages;
    std::vector<const void**> in_place;  // of each incoming message, or null
    size_t next = 0;                     // the current message
    size_t offset = 0;                   // bytes of its header and payload moved so far
    uint32_t sequence = 0;
    FrameHeader header{};

    bool busy() const { return next < messages.size(); }
    void push(void* data, size_t bytes, const void** place);
    void advance(size_t bytes);
    std::span<iovec> rest(size_t limit, std::span<iovec, 2> parts);
  };

  Result<size_t> pump_out();
  Result<size_t> pump_in();
  Result<size_t> read_message();
  Status check_header() const;

  const PeerName name_;
  Lane out_, in_;
};

}  // namespace cafetiere
