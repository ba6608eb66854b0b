// SPDX-License-Identifier: Apache-2.0
#include "core/comm/pulse.h"

#include <cstring>
#include <span>

namespace cafetiere {
namespace {

constexpr size_t kMaxText = 1024;

struct Header {
  uint32_t kind;
  uint32_t bytes;  // of the text that follows
};

}  // namespace

void send_pulse(const Pulse& pulse, Stream* to) {
  if (!to->valid()) return;
  const std::string cut = pulse.text.substr(0, kMaxText);
  const Header header{pulse.kind, static_cast<uint32_t>(cut.size())};
  std::string frame(reinterpret_cast<const char*>(&header), sizeof header);
  frame += cut;
  (void)!to->send(std::as_bytes(std::span(frame)));
}

Result<std::optional<Pulse>> take_pulse(std::vector<char>* bytes) {
  Header header{};
  if (bytes->size() < sizeof header) return std::optional<Pulse>();
  std::memcpy(&header, bytes->data(), sizeof header);
  if (header.bytes > kMaxText || header.kind < Pulse::kBeat || header.kind > Pulse::kAbort) {
    return internal_error("sent an invalid control message");
  }
  const size_t size = sizeof header + header.bytes;
  if (bytes->size() < size) return std::optional<Pulse>();
  Pulse pulse{static_cast<Pulse::Kind>(header.kind),
              {bytes->begin() + sizeof header, bytes->begin() + static_cast<ptrdiff_t>(size)}};
  bytes->erase(bytes->begin(), bytes->begin() + static_cast<ptrdiff_t>(size));
  return std::optional(std::move(pulse));
}

std::string last_words(Stream* from) {
  std::vector<char> bytes;
  char chunk[512];
  for (ssize_t n = 0; (n = from->receive(std::as_writable_bytes(std::span(chunk)))) > 0;) {
    bytes.insert(bytes.end(), chunk, chunk + n);
  }
  while (true) {
    const Result<std::optional<Pulse>> pulse = take_pulse(&bytes);
    if (!pulse.ok() || !*pulse) return "";
    if ((*pulse)->kind == Pulse::kAbort) return (*pulse)->text;
  }
}

}  // namespace cafetiere
