// SPDX-License-Identifier: Apache-2.0
#include "core/base/base64.h"

#include <gtest/gtest.h>

namespace cafetiere {
namespace {

TEST(Base64, TextsOfTheStandardAreRead) {
  const std::pair<const char*, const char*> known[] = {
      {"", ""},        {"Zg==", "f"},        {"Zm8=", "fo"},
      {"Zm9v", "foo"}, {"Zm9vYg==", "foob"}, {"+/+/", "\xfb\xff\xbf"}};
  for (const auto& [text, bytes] : known) {
    const auto read = from_base64(text);
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_EQ(*read, bytes);
  }
  EXPECT_EQ(*from_base64("AAA="), std::string(2, '\0'));
}

TEST(Base64, OthersAreRefused) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg===", "====", "Z===", "Zm=v", " Zm9v", "Zm9v\n", "Zm9-", "Zm\xffv"}) {
    EXPECT_FALSE(from_base64(text).ok()) << text;
  }
}

}  // namespace
}  // namespace cafetiere
