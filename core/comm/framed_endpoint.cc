// SPDX-License-Identifier: Apache-2.0
#include "core/comm/framed_endpoint.h"

#include "core/comm/stream.h"

namespace cafetiere {
namespace {

constexpr uint32_t kFrameMagic = 0x46544643;  // "CFTF"

}  // namespace

void FramedEndpoint::send(const void* data, size_t bytes) {
  out_.push(const_cast<void*>(data), bytes, nullptr);
}

void FramedEndpoint::receive(void* data, size_t bytes, const void** in_place) {
  in_.push(data, bytes, in_place);
}

Result<Endpoint::Progress> FramedEndpoint::progress() {
  Progress moved;
  if (sending()) {
    CFT_ASSIGN(moved.sent, pump_out());
  }
  if (receiving()) {
    CFT_ASSIGN(moved.received, pump_in());
  }
  return moved;
}

Result<size_t> FramedEndpoint::pump_out() {
  if (out_.offset == 0) {
    out_.header = {kFrameMagic, out_.sequence, out_.messages[out_.next].iov_len};
  }
  iovec parts[2];
  CFT_ASSIGN(const size_t n, write(out_.rest(quantum(), parts)));
  if (n > 0) out_.advance(n);
  return n;
}

Result<size_t> FramedEndpoint::pump_in() {
  CFT_ASSIGN(const size_t n, read_message());
  if (n == 0) return n;
  const bool had_header = in_.offset >= sizeof in_.header;
  if (!had_header && in_.offset + n >= sizeof in_.header) CFT_TRY(check_header());
  in_.advance(n);
  return n;
}

Result<size_t> FramedEndpoint::read_message() {
  const size_t bytes = in_.messages[in_.next].iov_len;
  const void** const place = in_.in_place[in_.next];
  // Only the round's last message: the peer sends nothing more before it is released.
  const bool is_last = in_.next + 1 == in_.messages.size();
  if (place && is_last && in_.offset == sizeof in_.header) {
    CFT_ASSIGN(const void* lies, find_in_place(bytes));
    if (lies) {
      *place = lies;
      return bytes;
    }
  }
  iovec parts[2];
  return read(in_.rest(quantum(), parts));
}

Status FramedEndpoint::check_header() const {
  const uint64_t expected = in_.messages[in_.next].iov_len;
  const FrameHeader& h = in_.header;
  if (h.magic != kFrameMagic || h.sequence != in_.sequence) {
    return internal_error(name_.text() + " sent bytes that are not a message of this group");
  }
  return h.bytes == expected ? Status() : wrong_size(name_, h.bytes, expected);
}

void FramedEndpoint::Lane::push(void* data, size_t bytes, const void** place) {
  if (!busy()) {
    messages.clear();
    in_place.clear();
    next = 0;
  }
  messages.push_back({data, bytes});
  in_place.push_back(place);
}

/// Counts bytes of the current message as moved.
void FramedEndpoint::Lane::advance(size_t bytes) {
  offset += bytes;
  if (offset < sizeof header + messages[next].iov_len) return;
  offset = 0;
  ++next;
  ++sequence;
}

/// The rest of the current message, at most `limit` bytes of its body.
std::span<iovec> FramedEndpoint::Lane::rest(size_t limit, std::span<iovec, 2> parts) {
  return rest_of_message(std::as_writable_bytes(std::span(&header, 1)), messages[next], offset,
                         limit, parts);
}

}  // namespace cafetiere
