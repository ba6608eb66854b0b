#include "cli/arguments.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace cafetiere {
namespace {

bool is_flag(std::string_view text) {
  return text.size() > 2 && text[0] == '-' &&
         (text[1] == '-' || std::isalpha(static_cast<unsigned char>(text[1])));
}

bool is_logging_switch(std::string_view flag) {
  const std::string_view name = flag.substr(0, flag.find('='));
  return name == "--logtostderr" || name == "--alsologtostderr";
}

}  // namespace

std::vector<std::string> normalise_arguments(const std::vector<std::string>& arguments,
                                             const std::vector<std::string>& commands) {
  std::vector<std::string> result;
  for (const std::string& argument : arguments) {
    const bool single = is_flag(argument) && argument[1] != '-';
    std::string text = single ? "-" + argument : argument;
    if (!is_flag(text) || !is_logging_switch(text)) result.push_back(std::move(text));
  }
  if (result.empty() || !is_flag(result.front())) return result;
  // Every flag but help and version takes a value, so what follows one is no command.
  for (size_t i = 1; i < result.size(); ++i) {
    const std::string& before = result[i - 1];
    const bool value = is_flag(before) && before.find('=') == before.npos;
    if (value || std::find(commands.begin(), commands.end(), result[i]) == commands.end()) continue;
    std::rotate(result.begin(), result.begin() + long(i), result.begin() + long(i) + 1);
    break;
  }
  return result;
}

}  // namespace cafetiere
