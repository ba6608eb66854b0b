// SPDX-License-Identifier: Apache-2.0
// SHA-256, to tell files and weights apart by their bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace cafetiere {

/// Bytes to hash, piece by piece; hex() ends it.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);

  /// The digest as 64 lower-case hexadecimal digits. Call once, last.
  std::string hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// The SHA-256 of `bytes` as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace cafetiere
