// SPDX-License-Identifier: Apache-2.0
#include "core/comm/ucx_endpoint.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "core/comm/stream.h"

namespace cafetiere {
namespace {

constexpr int kLengthBits = 41;          // enough for kMaxMessageBytes; the bits above hold the
                                         // rank
constexpr size_t kMostCopied = 4 << 20;  // bytes of pending messages, about what TCP takes
constexpr uint64_t kLengthMask = (uint64_t{1} << kLengthBits) - 1;

uint64_t tag_of(int rank, size_t bytes) { return uint64_t(rank) << kLengthBits | bytes; }

}  // namespace

Result<std::unique_ptr<Endpoint>> UcxEndpoint::create(PeerName name,
                                                      std::shared_ptr<UcxWorker> worker, int socket,
                                                      std::span<const std::byte> address) {
  std::unique_ptr<UcxEndpoint> endpoint(
      new UcxEndpoint(std::move(name), std::move(worker), socket));
  ucp::PeerParams params;
  params.field_mask = ucp::PeerParams::kRemoteAddress | ucp::PeerParams::kErrorMode |
                      ucp::PeerParams::kErrorHandler;
  params.address = address.data();
  params.error_mode = ucp::PeerParams::kReportPeerFailure;
  params.on_error = &UcxEndpoint::failed;
  params.error_context = endpoint.get();
  const ucp::Library& library = endpoint->worker_->library();
  auto made = library.ep_create(endpoint->worker_->get(), &params, &endpoint->peer_);
  if (made == ucp::kUnreachable) {
    // Shared memory cannot detect that a peer is gone. The group's monitor does.
    params.error_mode = 0;
    params.field_mask &= ~ucp::PeerParams::kErrorHandler;
    made = library.ep_create(endpoint->worker_->get(), &params, &endpoint->peer_);
    endpoint->reports_failure_ = false;
  }
  if (made == ucp::kOk) return std::unique_ptr<Endpoint>(std::move(endpoint));
  endpoint->peer_ = nullptr;
  return io_error(fmt::format("UCX knows no way to {}: {}", endpoint->name_.text(),
                              library.status_string(made)));
}

UcxEndpoint::~UcxEndpoint() {
  if (pending()) give_up();
  if (peer_) worker_->close(peer_, reports_failure_ && failure_ != ucp::kOk);
}

void UcxEndpoint::failed(void* self, ucp::Peer*, ucp::StatusCode why) {
  static_cast<UcxEndpoint*>(self)->failure_ = why;
}

ucp::RequestParams UcxEndpoint::params_of(Message* message) {
  ucp::RequestParams params;
  params.mask = ucp::RequestParams::kCallback | ucp::RequestParams::kUserData |
                ucp::RequestParams::kAlwaysRequest;
  params.user_data = message;
  return params;
}

void UcxEndpoint::start(Message* message, void* result) {
  if (ucp::is_error(result)) {
    message->done = true;
    message->status = ucp::status_of(result);
  } else {
    message->request = result;
  }
}

void UcxEndpoint::send(const void* data, size_t bytes) {
  Message& message = out_.emplace_back(Message{bytes});
  data = hand_over(data, &message);
  ucp::RequestParams params = params_of(&message);
  params.on_sent = [](void*, ucp::StatusCode status, void* context) {
    static_cast<Message*>(context)->status = status;
    static_cast<Message*>(context)->done = true;
  };
  start(&message, worker_->library().tag_send_sync_nbx(peer_, data, bytes,
                                                       tag_of(name_.self, bytes), &params));
}

/// The address to send from: the bytes themselves, or a copy.
const void* UcxEndpoint::hand_over(const void* data, Message* message) {
  const size_t bytes = message->bytes;
  const auto is_there = [&](const auto& memory) { return memory->holds(data, bytes); };
  if (std::ranges::any_of(exported_, is_there)) return data;
  if (bytes > kMostCopied - copied_) {
    message->kept = true;
    ++kept_;
    return data;
  }
  const auto* begin = static_cast<const std::byte*>(data);
  message->copy.assign(begin, begin + bytes);
  copied_ += bytes;
  return message->copy.data();
}

void UcxEndpoint::lend(const std::shared_ptr<const SharedMemory>& memory) {
  exported_.push_back(memory);
}

void UcxEndpoint::receive(void* data, size_t bytes, const void** /*in_place*/) {
  Message& message = in_.emplace_back(Message{bytes});
  ucp::RequestParams params = params_of(&message);
  params.on_received = [](void*, ucp::StatusCode status, const ucp::ReceiveInfo* info,
                          void* context) {
    static_cast<Message*>(context)->status = status;
    if (info) static_cast<Message*>(context)->info = *info;
    static_cast<Message*>(context)->done = true;
  };
  start(&message, worker_->library().tag_recv_nbx(worker_->get(), data, bytes,
                                                  tag_of(name_.peer, 0), ~kLengthMask, &params));
}

Result<Endpoint::Progress> UcxEndpoint::progress() {
  worker_->progress();
  Progress moved;
  CFT_ASSIGN(moved.sent, finish(&out_));
  CFT_ASSIGN(moved.received, finish(&in_));
  if (moved.any() || !pending()) return moved;
  if (failure_ != ucp::kOk) return lost(failure_);
  if (ended_ && !worker_->progress()) return connection_lost(name_.text(), 0);
  return moved;
}

/// Removes completed messages from the front; returns their bytes, plus 1 for the tag of each.
Result<size_t> UcxEndpoint::finish(std::deque<Message>* messages) {
  size_t bytes = 0;
  while (!messages->empty() && messages->front().done) {
    const Message message = std::move(messages->front());
    messages->pop_front();
    kept_ -= message.kept;
    copied_ -= message.copy.size();
    if (message.request) worker_->library().request_free(message.request);
    if (messages == &in_) {
      CFT_TRY(check(message));
    } else if (message.status != ucp::kOk) {
      return lost(message.status);
    }
    bytes += message.bytes + sizeof(uint64_t);
  }
  return bytes;
}

Status UcxEndpoint::check(const Message& received) const {
  const size_t sent = received.info.tag & kLengthMask;
  if (received.status == ucp::kTruncated || (received.status == ucp::kOk && sent != received.bytes))
    return wrong_size(name_, sent, received.bytes);
  return received.status == ucp::kOk ? Status() : lost(received.status);
}

bool UcxEndpoint::arm(std::vector<pollfd>* polls) {
  if (!pending()) return true;
  armed_ = true;
  polls->push_back({socket_, POLLIN, 0});
  const bool may_sleep = worker_->arm(polls);
  // Another endpoint's progress may have completed what this one waits for, without a new event.
  const bool ended = (!out_.empty() && out_.front().done) || (!in_.empty() && in_.front().done);
  return may_sleep && !ended && failure_ == ucp::kOk;
}

void UcxEndpoint::disarm() {
  worker_->disarm();
  if (!std::exchange(armed_, false)) return;
  std::byte none;
  const ssize_t n = recv(socket_, &none, 1, MSG_DONTWAIT);
  ended_ = n == 0 || (n < 0 && !would_block());
}

void UcxEndpoint::give_up() {
  if (!worker_->get()) return;
  if (peer_) worker_->close(std::exchange(peer_, nullptr), reports_failure_);
  cancel(&in_);
  const auto done = [&] {
    const auto is_done = [](const Message& m) { return m.done; };
    return std::ranges::all_of(out_, is_done) && std::ranges::all_of(in_, is_done);
  };
  if (!worker_->progress_until(done)) worker_->destroy();
}

void UcxEndpoint::cancel(std::deque<Message>* messages) {
  for (const Message& message : *messages) {
    if (!message.done) worker_->library().request_cancel(worker_->get(), message.request);
  }
}

Status UcxEndpoint::lost(ucp::StatusCode why) const {
  return unavailable(
      fmt::format("lost {}: UCX says: {}", name_.text(), worker_->library().status_string(why)));
}

}  // namespace cafetiere
