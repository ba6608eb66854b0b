// SPDX-License-Identifier: Apache-2.0
// UcxEndpoint: a peer reached with UCX, over InfiniBand or any other transport of UCX.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/endpoint.h"
#include "core/comm/ucx_worker.h"

namespace cafetiere {

/// Each message is one UCX message, whose tag holds the sender and the length. It counts as sent
/// immediately if it is stored in exported memory or can be copied, otherwise when the peer has it.
/// UCX makes progress only while it is called, so settled() waits until the peer has all messages.
class UcxEndpoint : public Endpoint {
 public:
  /// Connects to the worker of `address`; sends nothing yet. `socket` is a connection to the peer
  /// that carries no data and closes when the peer is gone. kIo: UCX cannot reach the peer.
  static Result<std::unique_ptr<Endpoint>> create(PeerName name, std::shared_ptr<UcxWorker> worker,
                                                  int socket, std::span<const std::byte> address);
  ~UcxEndpoint() override;

  std::string transport() const override { return "UCX " + worker_->version(); }
  void send(const void* data, size_t bytes) override;
  void receive(void* data, size_t bytes, const void** in_place) override;
  bool sending() const override { return kept_ > 0; }
  bool receiving() const override { return !in_.empty(); }
  bool pending() const override { return !out_.empty() || !in_.empty(); }
  Result<Progress> progress() override;
  Result<bool> settled() override { return out_.empty(); }
  bool arm(std::vector<pollfd>* polls) override;
  void disarm() override;
  void give_up() override;
  void lend(const std::shared_ptr<const SharedMemory>& memory) override;

 private:
  /// A pending message.
  struct Message {
    size_t bytes;
    void* request = nullptr;
    bool done = false;
    ucp::StatusCode status = ucp::kOk;
    ucp::ReceiveInfo info{};
    bool kept = false;                 // in the caller's memory, which may change once it is sent
    std::vector<std::byte> copy = {};  // its bytes, or none
  };

  UcxEndpoint(PeerName name, std::shared_ptr<UcxWorker> worker, int socket)
      : name_(std::move(name)), worker_(std::move(worker)), socket_(socket) {}
  static void failed(void* self, ucp::Peer* peer, ucp::StatusCode why);
  static ucp::RequestParams params_of(Message* message);
  static void start(Message* message, void* result);
  const void* hand_over(const void* data, Message* message);
  Result<size_t> finish(std::deque<Message>* messages);
  void cancel(std::deque<Message>* messages);
  Status check(const Message& received) const;
  Status lost(ucp::StatusCode why) const;

  const PeerName name_;
  const std::shared_ptr<UcxWorker> worker_;
  const int socket_;
  bool armed_ = false;
  bool ended_ = false;  // the peer closed the socket
  ucp::Peer* peer_ = nullptr;
  bool reports_failure_ = true;
  ucp::StatusCode failure_ = ucp::kOk;
  std::deque<Message> out_, in_;
  size_t kept_ = 0;    // number of messages in out_
  size_t copied_ = 0;  // bytes held by out_
  std::vector<std::shared_ptr<const SharedMemory>> exported_;
};

}  // namespace cafetiere
