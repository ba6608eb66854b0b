// SPDX-License-Identifier: Apache-2.0
#include "core/base/base64.h"

#include <openssl/evp.h>

#include <algorithm>
#include <climits>

namespace cafetiere {

Result<std::string> from_base64(std::string_view text) {
  const auto is_digit = [](unsigned char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
  };
  const size_t digits =
      size_t(std::ranges::find_if_not(text, is_digit) - text.begin());  // then only padding
  const size_t padding = text.size() - digits;
  const bool is_padded = padding <= 2 && text.substr(digits) == std::string_view("==", padding);
  if (!is_padded || text.size() % 4 != 0 || text.size() > INT_MAX) {
    return invalid_argument("the text is not base64 of less than 1.5 GiB");
  }
  std::string bytes(text.size() / 4 * 3, '\0');
  const int written =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), int(text.size()));
  if (written != int(bytes.size())) return invalid_argument("the text is not base64");
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace cafetiere
