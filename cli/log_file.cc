// SPDX-License-Identifier: Apache-2.0
#include "cli/log_file.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>

namespace cafetiere {

LogFile open_log_file(const std::string& folder) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const char* user = std::getenv("USER");
  const std::time_t now = std::time(nullptr);
  tm local{};
  ::localtime_r(&now, &local);
  const std::string name = fmt::format("caffe.{}.{}.log.INFO.{:%Y%m%d-%H%M%S}.{}", host.data(),
                                       user ? user : "unknown", local, ::getpid());
  LogFile file(std::fopen((std::filesystem::path(folder) / name).c_str(), "w"));
  if (!file) return nullptr;
  fmt::print(file.get(),
             "Log file created at: {:%Y/%m/%d %H:%M:%S}\nRunning on machine: {}\n"
             "Log line format: [IWEF]mmdd hh:mm:ss.uuuuuu threadid file:line] msg\n",
             local, host.data());
  std::error_code ignored;
  const std::filesystem::path link = std::filesystem::path(folder) / "caffe.INFO";
  std::filesystem::remove(link, ignored);
  std::filesystem::create_symlink(name, link, ignored);
  return file;
}

}  // namespace cafetiere
