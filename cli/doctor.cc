// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <poll.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <regex>

#include "cli/command.h"
#include "cli/machine.h"

namespace cafetiere {
namespace {

namespace fs = std::filesystem;
using enum Finding::Verdict;

constexpr int kJava = 17;
constexpr double kGiB = 1 << 30;
constexpr uint64_t kLibraryBytes = 20 << 20;  // unpacked, with room to spare
constexpr int kPatienceMillis = 3000;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, HOST_NAME_MAX);
  return name;
}

/// What a program prints, on its error output too; "" if it cannot be started.
std::string said_by(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen((command + " 2>&1").c_str(), "r"),
                                                   ::pclose);
  std::string said;
  char part[512];
  while (pipe && std::fgets(part, sizeof part, pipe.get()) != nullptr) said += part;
  return said;
}

/// A limit of this process's cgroup, in bytes, in either version of cgroups.
std::optional<double> memory_limit(const fs::path& root) {
  double least = 0;
  for (const char* name : {"memory.max", "memory/memory.limit_in_bytes"}) {
    double bytes = 0;
    if (std::ifstream(root / "sys/fs/cgroup" / name) >> bytes) least = bytes;
  }
  if (least <= 0) return std::nullopt;
  return least;
}

/// What the first group of `pattern` matches, "" if it does not.
std::string found_in(const std::string& text, const char* pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "";
}

void show(const Finding& finding) {
  constexpr const char* kWords[] = {"ok", "note", "WRONG"};
  fmt::print("{:<6}{:<12}{}\n", kWords[int(finding.verdict)], finding.what, finding.found);
  if (!finding.advice.empty()) fmt::print("{:<18}-> {}\n", "", finding.advice);
}

std::vector<Finding> examine_machine() {
  const std::string java = environment("JAVA_HOME");
  const std::string program = java.empty() ? "java" : fmt::format("'{}/bin/java'", java);
  const std::string folder = environment("TMPDIR");
  return {examine_processor(instruction_sets()),
          examine_memory("/"),
          examine_c_library(::gnu_get_libc_version()),
          examine_folder(folder.empty() ? "/tmp" : folder),
          examine_java(said_by(program + " -version")),
          examine_spark(environment("SPARK_HOME"))};
}

}  // namespace

Finding examine_processor(const std::vector<std::string>& instruction_sets) {
  Finding finding{kFine, "Processor", "", ""};
  finding.found = fmt::format("{}, {} cores, {}", cpu_name(), usable_cores(),
                              instruction_sets.empty() ? "no vectors" : instruction_sets.back());
#if defined(__x86_64__)
  if (std::ranges::find(instruction_sets, "avx2") == instruction_sets.end()) {
    finding.verdict = kWrong;
    finding.advice =
        "the engine needs AVX2: take a machine of 2015 or later, or a virtual one that "
        "passes its host's processor through";
  }
#endif
  return finding;
}

Finding examine_memory(const std::string& root) {
  Finding finding{kFine, "Memory", "", ""};
  std::ifstream info(fs::path(root) / "proc/meminfo");
  double kilobytes = 0;
  std::string word;
  info >> word >> kilobytes;
  const double total = kilobytes * 1024, limit = memory_limit(root).value_or(total);
  finding.found = fmt::format("{:.1f} GiB", total / kGiB);
  if (limit < total)
    finding.found += fmt::format(", of which this process may take {:.1f}", limit / kGiB);
  if (std::min(total, limit) < 2 * kGiB) {
    finding.verdict = kDoubtful;
    finding.advice = "an executor with a heap of 1 GiB, a net and rows needs 2 GiB";
  }
  return finding;
}

Finding examine_c_library(const std::string& version) {
  int major = 0, minor = 0;
  std::sscanf(version.c_str(), "%d.%d", &major, &minor);
  Finding finding{kFine, "C library", "glibc " + version, ""};
  if (major < 2 || (major == 2 && minor < 17)) {
    finding.verdict = kWrong;
    finding.advice = "glibc 2.17 or later is needed: RHEL 7, Debian 8, Ubuntu 14.04 or newer";
  }
  return finding;
}

Finding examine_folder(const std::string& folder) {
  Finding finding{kWrong, "Folder", folder, ""};
  struct statvfs system {};
  constexpr const char* kInstead =
      "set -Djava.io.tmpdir (spark.executor.extraJavaOptions, spark.driver.extraJavaOptions) to "
      "another folder";
  if (::statvfs(folder.c_str(), &system) != 0 || ::access(folder.c_str(), W_OK) != 0) {
    finding.found += ": " + errno_text(errno);
    finding.advice = kInstead;
    return finding;
  }
  const uint64_t room = uint64_t(system.f_bavail) * system.f_frsize;
  finding.found += fmt::format(", {:.1f} GiB free", double(room) / kGiB);
  if (system.f_flag & ST_NOEXEC) {
    finding.found += ", mounted noexec";
    finding.advice = fmt::format("libraries cannot be loaded from there: {}", kInstead);
  } else if (room < kLibraryBytes) {
    finding.advice = fmt::format("the engine takes 20 MB there: make room, or {}", kInstead);
  } else {
    finding.verdict = kFine;
  }
  return finding;
}

Finding examine_java(const std::string& said) {
  Finding finding{kWrong, "Java", "none", ""};
  const std::string version = found_in(said, "version \"([^\"]+)\"");
  if (version.empty()) {
    finding.advice = "install Java 17, and set JAVA_HOME if it is not in PATH; only Spark needs it";
    finding.verdict = kDoubtful;
    return finding;
  }
  finding.found = version;
  const int first = std::atoi(version.c_str());
  const int major = first == 1 ? std::atoi(version.c_str() + 2) : first;  // 1.8 is 8
  if (major < kJava) {
    finding.advice = "Java 17 is needed, on driver and executors: set JAVA_HOME to it";
  } else if (major > kJava) {
    finding.verdict = kDoubtful;
    finding.advice = "tests run with Java 17; a later one has not been tried";
  } else {
    finding.verdict = kFine;
  }
  return finding;
}

Finding examine_spark(const std::string& home) {
  Finding finding{kDoubtful, "Spark", "SPARK_HOME is not set",
                  "set it to have Spark's version checked; PySpark from pip does not need it"};
  if (home.empty()) return finding;
  finding.found = home + " has no spark-core";
  finding.advice = "set SPARK_HOME to the folder with bin and jars";
  std::error_code failed;
  for (const fs::directory_entry& jar : fs::directory_iterator(fs::path(home) / "jars", failed)) {
    const std::string version =
        found_in(jar.path().filename().string(), R"(^spark-core_2\.\d+-(.+)\.jar$)");
    if (version.empty()) continue;
    finding.found = version + " in " + home;
    const bool known = version.starts_with("3.5.") || version.starts_with("4.1.");
    finding.verdict = known ? kFine : kDoubtful;
    finding.advice = known ? "" : "tests run with Spark 3.5 and 4.1; this one has not been tried";
  }
  return finding;
}

std::vector<Finding> examine_ports(const std::string& host, PortRange ports) {
  std::vector<Finding> found;
  for (int port = ports.first; port <= ports.last; ++port) {
    const std::string name = port == 0 ? host : fmt::format("{}:{}", host, port);
    Finding finding{kFine, "Address", name, ""};
    if (const auto listening = listen_on(host, {port, port}); listening.ok()) {
      const std::string address = local_address(listening->get()).text();
      finding.found += ", others would connect to " + address;
      if (address.starts_with("127.") || address.starts_with("[::1]")) {
        finding.verdict = kDoubtful;
        finding.advice =
            "other machines cannot reach it: set SPARK_LOCAL_IP to an address in their network";
      }
    } else {
      finding.verdict = kWrong;
      finding.advice = listening.status().message();
    }
    found.push_back(finding);
  }
  return found;
}

Finding examine_peer(const std::string& address) {
  Finding finding{kWrong, "Peer", address, "open that port between the machines, both ways"};
  const auto parsed = parse_address(address);
  if (!parsed.ok()) {
    finding.advice = parsed.status().message();
    return finding;
  }
  const auto connection = start_connect(*parsed);
  if (!connection.ok()) {
    finding.found += ": " + connection.status().message();
    return finding;
  }
  pollfd waiting{connection->get(), POLLOUT, 0};
  int error = ETIMEDOUT;
  socklen_t size = sizeof error;
  if (::poll(&waiting, 1, kPatienceMillis) == 1) {
    ::getsockopt(connection->get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) {
    finding.found += ": " + errno_text(error);
    return finding;
  }
  finding.verdict = kFine;
  finding.advice.clear();
  return finding;
}

Action add_doctor(CLI::App& app) {
  struct Flags {
    std::string host, ports, peer;
  };
  const auto flags = std::make_shared<Flags>();
  app.add_option(
      "--bind", flags->host,
      "address of this machine that others connect to (default: SPARK_LOCAL_IP, else that of "
      "its name)");
  app.add_option("--ports", flags->ports,
                 "range of ports that have to be free, such as 40000-40100, as "
                 "spark.cafetiere.rankPorts names them (default: any)");
  app.add_option("--peer", flags->peer,
                 "HOST:PORT of another machine to reach, where something listens");
  return [flags]() -> Status {
    CFT_ASSIGN(const PortRange ports, parse_ports(flags->ports));
    std::string host = flags->host.empty() ? environment("SPARK_LOCAL_IP") : flags->host;
    if (host.empty()) host = host_name();
    std::vector<Finding> findings = examine_machine();
    for (Finding& finding : examine_ports(host, ports)) findings.push_back(std::move(finding));
    if (!flags->peer.empty()) findings.push_back(examine_peer(flags->peer));
    int wrong = 0;
    for (const Finding& finding : findings) {
      show(finding);
      wrong += finding.verdict == kWrong;
    }
    if (wrong > 0) return invalid_argument(fmt::format("{} of these must be changed", wrong));
    fmt::print("Nothing has to be changed.\n");
    return {};
  };
}

}  // namespace cafetiere
