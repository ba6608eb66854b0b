// SPDX-License-Identifier: Apache-2.0
#include "core/base/sha256.h"

#include <gtest/gtest.h>

#include <string_view>

namespace cafetiere {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(bytes("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, TakesBytesInPieces) {
  Sha256 hash;
  hash.update(bytes("a"));
  hash.update(bytes("bc"));
  EXPECT_EQ(hash.hex(), sha256_hex(bytes("abc")));
}

}  // namespace
}  // namespace cafetiere
