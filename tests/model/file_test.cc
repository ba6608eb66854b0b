// SPDX-License-Identifier: Apache-2.0
#include "core/model/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

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

TEST(WriteFile, LeavesADeviceAndAPipeWhatTheyAre) {
  const TempDir folder;
  const std::string pipe = folder.path("pipe"), link = folder.path("null");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(write_file(pipe, "through").ok());
  char read_back[16];
  EXPECT_EQ(std::string(read_back, size_t(read(reader, read_back, sizeof read_back))), "through");
  close(reader);
  ASSERT_EQ(symlink("/dev/null", link.c_str()), 0);
  ASSERT_TRUE(write_file(link, "nowhere").ok());
  struct stat about {};
  ASSERT_EQ(stat(pipe.c_str(), &about), 0);
  EXPECT_TRUE(S_ISFIFO(about.st_mode));
  ASSERT_EQ(stat(link.c_str(), &about), 0);
  EXPECT_TRUE(S_ISCHR(about.st_mode));
}

// Also below /dev, where /dev/shm is memory for files.
TEST(WriteFile, TakesThePlaceOfALinkToAFile) {
  const std::string base = "/dev/shm/cafetiere_file_test." + std::to_string(getpid());
  const std::string file = base + ".file", link = base + ".link";
  ASSERT_TRUE(write_file(file, "old").ok());
  ASSERT_EQ(symlink(file.c_str(), link.c_str()), 0);
  EXPECT_TRUE(write_file(link, "new").ok());
  EXPECT_EQ(*read_file(file) + " " + *read_file(link), "old new");
  unlink(link.c_str());
  unlink(file.c_str());
}

TEST(WriteFile, AddsToAnOpenFile) {
  const TempDir folder;
  const int file = open(folder.path("file").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  for (const char* text : {"one ", "two"}) {
    EXPECT_TRUE(write_file("/dev/fd/" + std::to_string(file), text).ok());
  }
  close(file);
  EXPECT_EQ(*read_file(folder.path("file")), "one two");
}

TEST(WriteFiles, ReplacesAllOrNone) {
  const TempDir folder;
  const std::string one = folder.path("one"), two = folder.path("two");
  const std::string nowhere = folder.path("missing/three");
  ASSERT_TRUE(write_files(std::vector<NewFile>{{one, "1"}, {two, "2"}}).ok());
  EXPECT_FALSE(write_files(std::vector<NewFile>{{one, "a"}, {nowhere, "b"}, {two, "c"}}).ok());
  EXPECT_EQ(*read_file(one) + *read_file(two), "12");
  ASSERT_TRUE(write_files(std::vector<NewFile>{{one, "a"}, {two, "c"}}).ok());
  EXPECT_EQ(*read_file(one) + *read_file(two), "ac");
}

}  // namespace
}  // namespace cafetiere
