// SPDX-License-Identifier: Apache-2.0
// Parsing of any message's text, with errors that contain the position.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace cafetiere {

/// Parses a message's text. Errors read `source:line:column: what is wrong; what may be meant`.
Status parse_text(std::string_view text, const std::string& source,
                  google::protobuf::Message* message);

}  // namespace cafetiere
