// SPDX-License-Identifier: Apache-2.0
// Pulse: a message of a control connection: a heartbeat, a goodbye, or why a rank gives up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/comm/stream.h"

namespace cafetiere {

struct Pulse {
  enum Kind : uint32_t { kBeat = 1, kBye = 2, kAbort = 3 };
  Kind kind = kBeat;
  std::string text = {};  ///< of kAbort: the reason
};

/// Sends a pulse, whose text is cut to 1 KiB. Pulses are small and rare: if one does not fit at
/// once, the peer has not read for minutes, and the pulse is dropped.
void send_pulse(const Pulse& pulse, Stream* to);

/// Takes the first pulse of `bytes`; none if it is not complete yet. An error: other bytes.
Result<std::optional<Pulse>> take_pulse(std::vector<char>* bytes);

/// Why a peer gave up, which has closed its end: the text of its last pulse; "" if it told nothing.
std::string last_words(Stream* from);

}  // namespace cafetiere
