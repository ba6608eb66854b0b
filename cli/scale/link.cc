// SPDX-License-Identifier: Apache-2.0
#include "cli/scale/link.h"

#include <fmt/format.h>

#include <charconv>
#include <ranges>

namespace cafetiere {
namespace {

constexpr double kTcpPayload = 1448.0 / 1538;  // of Ethernet's bits, with time stamps and gaps
constexpr double kTcpMessage = 4e-6;
constexpr double kTcpByte = 8 / 12e9;  // docs/scale.md: of a core that sends, receives and adds

Link ethernet(std::string name, double gbit, double latency_s) {
  return {std::move(name), gbit * 1e9 / 8 * kTcpPayload, latency_s, kTcpMessage, kTcpByte};
}

/// The positive number that all of `text` is.
bool parse_number(std::string_view text, double* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value > 0 && *value < 1e9;
}

}  // namespace

const std::vector<Link>& known_links() {
  static const std::vector<Link> links{ethernet("1gbe", 1, 50e-6),
                                       ethernet("10gbe", 10, 25e-6),
                                       ethernet("25gbe", 25, 20e-6),
                                       ethernet("100gbe", 100, 15e-6),
                                       {"infiniband", 12e9, 2e-6, 1e-6, 0}};
  return links;
}

Result<Link> parse_link(std::string_view text) {
  std::string names;
  for (const Link& link : known_links()) {
    if (link.name == text) return link;
    names += link.name + ", ";
  }
  std::vector<double> numbers;
  bool are_numbers = true;
  for (const auto word : std::views::split(text, ',')) {
    are_numbers &= parse_number({word.begin(), word.end()}, &numbers.emplace_back());
  }
  if (are_numbers && (numbers.size() == 2 || numbers.size() == 3)) {
    const double mbit = numbers[0], milliseconds = numbers[1];
    const double byte_s = numbers.size() == 3 ? 8e-6 / numbers[2] : kTcpByte;
    return Link{fmt::format("{} Mbit/s with {} ms", mbit, milliseconds), mbit * 1e6 / 8,
                milliseconds / 1e3, kTcpMessage, byte_s};
  }
  return invalid_argument(fmt::format(
      "link \"{}\" is not known; write one of {}or MBIT,ONE_WAY_MS as in 500,25", text, names));
}

}  // namespace cafetiere
