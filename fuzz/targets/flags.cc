// SPDX-License-Identifier: Apache-2.0
// A command line, one argument a line, brought to the parser's form and parsed; nothing is run.
#include <sstream>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"
#include "fuzz/targets.h"

void cafetiere::fuzz::flags(std::string_view bytes) {
  std::vector<std::string> given;
  std::istringstream lines{std::string(bytes)};
  for (std::string line; std::getline(lines, line);) given.push_back(line);
  CLI::App app("", "cafetiere");
  app.set_version_flag("--version", "1");
  const std::vector<std::pair<std::string, Action (*)(CLI::App&)>> commands = {
      {"train", add_train},
      {"test", add_test},
      {"time", add_time},
      {"extract_features", add_extract_features},
      {"convert_imageset", add_convert_imageset},
      {"import_onnx", add_import_onnx}};
  std::vector<std::string> names;
  std::vector<Action> actions;  // they own what the flags are written to
  for (const auto& [name, add] : commands) {
    actions.push_back(add(*app.add_subcommand(name)));
    names.push_back(name);
  }
  export_log_flags(&given);
  const std::vector<std::string> arguments = normalise_arguments(given, names);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Error&) {  // what the program tells the user
  }
}
