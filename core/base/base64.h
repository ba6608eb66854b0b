// SPDX-License-Identifier: Apache-2.0
// Bytes written as text.
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace cafetiere {

/// The bytes of a text in base64 (RFC 4648, section 4, padded).
Result<std::string> from_base64(std::string_view text);

}  // namespace cafetiere
