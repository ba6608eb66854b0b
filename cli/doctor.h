// SPDX-License-Identifier: Apache-2.0
// What a machine needs before Spark's executors can train on it, looked at one by one.
#pragma once

#include <string>
#include <vector>

#include "core/comm/socket.h"

namespace cafetiere {

/// What was found of one thing.
struct Finding {
  enum class Verdict { kFine, kDoubtful, kWrong };

  Verdict verdict = Verdict::kFine;
  std::string what;    ///< such as "Java"
  std::string found;   ///< what is there
  std::string advice;  ///< what to do about it; "" where all is well
};

Finding examine_processor(const std::vector<std::string>& instruction_sets);
/// `root` is where proc and sys are.
Finding examine_memory(const std::string& root);
Finding examine_c_library(const std::string& version);
/// Whether the engine can be unpacked into a folder and loaded from there.
Finding examine_folder(const std::string& folder);
/// `said` is what `java -version` prints, "" if there is no such program.
Finding examine_java(const std::string& said);
/// `home` is Spark's, "" if it is not known.
Finding examine_spark(const std::string& home);
/// Whether a program may listen at this address of the machine: on each of the ports, or on any.
std::vector<Finding> examine_ports(const std::string& host, PortRange ports);
/// Whether another machine can be reached at "host:port" within three seconds.
Finding examine_peer(const std::string& address);

}  // namespace cafetiere
