// SPDX-License-Identifier: Apache-2.0
#include "cli/secret.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace cafetiere {

Result<std::string> random_secret() {
  std::array<unsigned char, 32> bytes{};
  if (getentropy(bytes.data(), bytes.size()) != 0) {
    return io_error(fmt::format("no random bytes: {}", strerror(errno)));
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace cafetiere
