// SPDX-License-Identifier: Apache-2.0
#include "core/model/nearest.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace cafetiere {
namespace {

constexpr size_t kLongestName = 256;  // bounds the quadratic cost for hostile input

std::string lower(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> edits(a.size() + 1, std::vector<int>(b.size() + 1));
  std::iota(edits[0].begin(), edits[0].end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    edits[i][0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = edits[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits.back().back();
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.empty() || name.size() > kLongestName) return "";
  const std::string wanted = lower(name);
  int best = static_cast<int>(std::max<size_t>(name.size() / 3, 1)) + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const int distance = edit_distance(wanted, lower(candidate));
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_name(name, candidates);
  return nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?";
}

}  // namespace cafetiere
