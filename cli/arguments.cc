// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "core/model/file.h"

namespace cafetiere {
namespace {

constexpr int64_t kMaxFlagFile = 1 << 20;

bool is_flag(std::string_view text) {
  return text.size() > 2 && text[0] == '-' &&
         (text[1] == '-' || std::isalpha(static_cast<unsigned char>(text[1])));
}

/// The name of `-name`, `--name` and `--name=value`; "" for what is no flag.
std::string_view flag_name(std::string_view text) {
  if (!is_flag(text)) return "";
  text.remove_prefix(text[1] == '-' ? 2 : 1);
  return text.substr(0, text.find('='));
}

/// The value of the flag at `i`: behind its '=', or what follows it, which is then stepped over.
std::string flag_value(const std::vector<std::string>& arguments, size_t* i) {
  const size_t equals = arguments[*i].find('=');
  if (equals != std::string::npos) return arguments[*i].substr(equals + 1);
  return *i + 1 < arguments.size() ? arguments[++*i] : "";
}

struct LogFlag {
  std::string_view name;
  bool is_switch;  // true where no value is given
};
constexpr LogFlag kLogFlags[] = {
    {"logtostderr", true}, {"alsologtostderr", true},  {"colorlogtostderr", true}, {"v", false},
    {"log_dir", false},    {"stderrthreshold", false}, {"minloglevel", false},
};

}  // namespace

Result<std::vector<std::string>> read_flag_files(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (flag_name(arguments[i]) != "flagfile") {
      result.push_back(arguments[i]);
      continue;
    }
    CFT_ASSIGN(const std::string text, read_file(flag_value(arguments, &i), kMaxFlagFile));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const size_t begin = line.find_first_not_of(" \t");
      if (begin == line.npos || line[begin] == '#') continue;
      result.push_back(line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin));
    }
  }
  return result;
}

void export_log_flags(std::vector<std::string>* arguments) {
  std::vector<std::string> rest;
  for (size_t i = 0; i < arguments->size(); ++i) {
    const std::string_view name = flag_name((*arguments)[i]);
    const auto* flag = std::ranges::find(kLogFlags, name, &LogFlag::name);
    if (flag == std::end(kLogFlags)) {
      rest.push_back((*arguments)[i]);
      continue;
    }
    const bool bare = flag->is_switch && (*arguments)[i].find('=') == std::string::npos;
    const std::string value = bare ? "1" : flag_value(*arguments, &i);
    ::setenv(("GLOG_" + std::string(flag->name)).c_str(), value.c_str(), 1);
  }
  *arguments = std::move(rest);
}

std::vector<std::string> normalise_arguments(const std::vector<std::string>& arguments,
                                             const std::vector<std::string>& commands) {
  std::vector<std::string> result;
  for (const std::string& argument : arguments) {
    const bool single = is_flag(argument) && argument[1] != '-';
    result.push_back(single ? "-" + argument : argument);
  }
  if (result.empty() || !is_flag(result.front())) return result;
  if (result.front() == "--version") return {result.front()};
  // What follows a flag is its value, unless that leaves no command: switches have none.
  for (const bool after_flags : {false, true}) {
    for (size_t i = 1; i < result.size(); ++i) {
      const std::string& before = result[i - 1];
      const bool value = is_flag(before) && before.find('=') == before.npos;
      if (value && !after_flags) continue;
      if (std::ranges::find(commands, result[i]) == commands.end()) continue;
      std::rotate(result.begin(), result.begin() + long(i), result.begin() + long(i) + 1);
      return result;
    }
  }
  return result;
}

std::vector<std::string> help_arguments(std::vector<std::string> arguments,
                                        const std::vector<std::string>& commands) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  if (arguments.size() == 1) return {"--help"};
  const std::string& asked = arguments[1];
  if (std::ranges::find(commands, asked) == commands.end()) return {asked};
  return {asked, "--help"};
}

}  // namespace cafetiere
