// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using enum Finding::Verdict;

void write(const TempDir& root, const std::string& name, const std::string& text) {
  const std::filesystem::path path = root.path(name.c_str());
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

#if defined(__x86_64__)
TEST(Doctor, WantsAvx2) {
  EXPECT_EQ(examine_processor({"sse4.2", "avx"}).verdict, kWrong);
  EXPECT_EQ(examine_processor({"sse4.2", "avx", "avx2"}).verdict, kFine);
}
#endif

TEST(Doctor, KnowsJavaByWhatItSays) {
  const auto said = [](const char* version) {
    return examine_java(std::string("openjdk version \"") + version + "\" 2026-10-20\n");
  };
  EXPECT_EQ(said("17.0.13").verdict, kFine);
  EXPECT_EQ(said("21.0.5").verdict, kDoubtful);
  EXPECT_EQ(said("11.0.25").verdict, kWrong);
  EXPECT_EQ(said("1.8.0_432").verdict, kWrong);
  EXPECT_EQ(examine_java("sh: 1: java: not found").found, "none");
}

TEST(Doctor, WantsAGlibcOf2014) {
  EXPECT_EQ(examine_c_library("2.12").verdict, kWrong);
  EXPECT_EQ(examine_c_library("2.17").verdict, kFine);
  EXPECT_EQ(examine_c_library("2.36").verdict, kFine);
}

TEST(Doctor, TakesTheLesserOfMemoryAndLimit) {
  const TempDir root;
  write(root, "proc/meminfo", "MemTotal:       8388608 kB\nMemFree: 1 kB\n");
  EXPECT_EQ(examine_memory(root.path(".")).verdict, kFine);
  write(root, "sys/fs/cgroup/memory.max", "1073741824\n");
  const Finding limited = examine_memory(root.path("."));
  EXPECT_EQ(limited.verdict, kDoubtful);
  EXPECT_EQ(limited.found, "8.0 GiB, of which this process may take 1.0");
  write(root, "sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(examine_memory(root.path(".")).verdict, kFine);
}

TEST(Doctor, FindsSparkByItsJars) {
  const TempDir home;
  EXPECT_EQ(examine_spark("").verdict, kDoubtful);
  EXPECT_EQ(examine_spark(home.path(".")).verdict, kDoubtful);
  write(home, "jars/spark-core_2.13-4.1.4.jar", "");
  EXPECT_EQ(examine_spark(home.path(".")).verdict, kFine);
  const TempDir older;
  write(older, "jars/spark-core_2.12-3.3.2.jar", "");
  EXPECT_EQ(examine_spark(older.path(".")).verdict, kDoubtful);
  EXPECT_TRUE(examine_spark(older.path(".")).found.starts_with("3.3.2 in "));
}

TEST(Doctor, TriesTheFolder) {
  const TempDir folder;
  EXPECT_EQ(examine_folder(folder.path(".")).verdict, kFine);
  EXPECT_EQ(examine_folder(folder.path("none")).verdict, kWrong);
  // Linux mounts it so wherever it has it.
  const Finding proc = examine_folder("/proc");
  EXPECT_EQ(proc.verdict, kWrong);
}

TEST(Doctor, ListensAndConnects) {
  const auto listening = listen_on("127.0.0.1");
  ASSERT_TRUE(listening.ok());
  const std::string address = local_address(listening->get()).text();
  EXPECT_EQ(examine_peer(address).verdict, kFine);
  EXPECT_EQ(examine_peer("nowhere").verdict, kWrong);

  const int taken = std::stoi(address.substr(address.rfind(':') + 1));
  EXPECT_EQ(examine_ports("127.0.0.1", {taken, taken}).front().verdict, kWrong);
  const Finding any = examine_ports("127.0.0.1", {}).front();
  EXPECT_EQ(any.verdict, kDoubtful) << "no other machine reaches it";
}

}  // namespace
}  // namespace cafetiere
