// SPDX-License-Identifier: Apache-2.0
#include "core/model/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/data/temp_dir.h"

namespace cafetiere {
namespace {

TEST(WriteFile, FollowsNoLinkThatSomebodyPutInItsWay) {
  const TempDir folder;
  const std::string path = folder.path("secret"), other = folder.path("other");
  ASSERT_TRUE(write_file(other, "kept").ok());
  const std::string aside = path + "." + std::to_string(getpid()) + ".tmp";
  ASSERT_EQ(symlink(other.c_str(), aside.c_str()), 0);
  const Status status = write_file(path, "a secret", 0600);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(*read_file(path), "a secret");
  EXPECT_EQ(*read_file(other), "kept");
  struct stat about {};
  ASSERT_EQ(lstat(path.c_str(), &about), 0);
  EXPECT_TRUE(S_ISREG(about.st_mode));
  EXPECT_EQ(about.st_mode & 0777, 0600U);
}

TEST(WriteFile, TakesThePlaceOfWhatAKilledProcessLeft) {
  const TempDir folder;
  const std::string path = folder.path("file");
  const std::string aside = path + "." + std::to_string(getpid()) + ".tmp";
  ASSERT_TRUE(write_file(aside, "half").ok());
  ASSERT_TRUE(write_file(path, "whole").ok());
  EXPECT_EQ(*read_file(path), "whole");
}

}  // namespace
}  // namespace cafetiere
