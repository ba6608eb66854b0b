// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/reference.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

namespace cafetiere {

namespace fs = std::filesystem;

bool reference_is_there() { return fs::exists(CFT_REFERENCE_RUNNER); }

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::string run_reference(const std::vector<std::string>& arguments,
                          const ReferenceKernels& kernels) {
  const TempDir folder;
  const std::string log = folder.path("log");
  std::string command = fmt::format("OPENBLAS_NUM_THREADS={} ", kernels.threads);
  if (!kernels.core.empty()) command += fmt::format("OPENBLAS_CORETYPE={} ", kernels.core);
  command += fmt::format("'{}'", CFT_REFERENCE_RUNNER);
  for (const std::string& argument : arguments) command += fmt::format(" '{}'", argument);
  const int status = std::system(fmt::format("{} > '{}' 2>&1", command, log).c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  std::ifstream file(log);
  return fmt::format("{}\n{}", command, std::string(std::istreambuf_iterator<char>(file), {}));
}

double relative_difference(const std::vector<float>& actual, const std::vector<float>& expected) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (actual.size() != expected.size()) return kInfinity;
  double largest = 0, difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(actual[i]) || std::isnan(expected[i])) return kInfinity;
    largest = std::max(largest, std::fabs(double(expected[i])));
    difference = std::max(difference, std::fabs(double(actual[i]) - double(expected[i])));
  }
  return largest > 0 ? difference / largest : difference;
}

}  // namespace cafetiere
