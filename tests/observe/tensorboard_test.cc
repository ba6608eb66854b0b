// SPDX-License-Identifier: Apache-2.0
#include "core/observe/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;

TEST(TensorBoard, Crc32cGivesThePublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

uint32_t unmask(uint32_t masked) { return std::rotl(masked - 0xA282EAD8u, 15); }

/// Splits a file into its payloads and checks every CRC.
std::vector<std::string> payloads(std::string_view file) {
  std::vector<std::string> out;
  while (!file.empty()) {
    uint64_t length = 0;
    uint32_t length_crc = 0, payload_crc = 0;
    std::memcpy(&length, file.data(), 8);
    std::memcpy(&length_crc, file.data() + 8, 4);
    EXPECT_EQ(unmask(length_crc), crc32c(file.substr(0, 8)));
    const std::string_view payload = file.substr(12, length);
    std::memcpy(&payload_crc, file.data() + 12 + length, 4);
    EXPECT_EQ(unmask(payload_crc), crc32c(payload));
    out.emplace_back(payload);
    file.remove_prefix(length + 16);
  }
  return out;
}

TEST(TensorBoard, WritesVersionThenScalars) {
  const TempDir folder;
  std::string path;
  {
    auto sink = TensorBoardSink::open(folder.path(""));
    ASSERT_TRUE(sink.ok()) << sink.status().message();
    path = (*sink)->path();
    Progress p;
    p.step = 300;
    p.loss = 0.5;
    (*sink)->progress(p);
    (*sink)->test({300, "", {{"accuracy", 1.0}}});
  }
  EXPECT_THAT(path, HasSubstr("/events.out.tfevents."));
  const auto records = payloads(text_of_file(path));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].substr(9),
            "\x1a\x0d"
            "brain.Event:2");
  // step 300 as a varint, then summary{value{tag "test/accuracy", simple_value 1.0f}}.
  const std::string scalar =
      "\x0a\x0d"
      "test/accuracy\x15" +
      std::string("\0\0\x80\x3f", 4);
  EXPECT_EQ(records[2].substr(9), std::string("\x10\xac\x02\x2a\x16\x0a\x14", 7) + scalar);
  EXPECT_THAT(records[1], HasSubstr("train/loss"));
}

TEST(TensorBoard, NamesTheFileItCannotOpen) {
  const auto sink = TensorBoardSink::open("/nonexistent");
  EXPECT_EQ(sink.status().code(), ErrorCode::kIo);
  EXPECT_THAT(sink.status().message(), HasSubstr("/nonexistent/events.out"));
}

}  // namespace
}  // namespace cafetiere
