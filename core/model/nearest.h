// SPDX-License-Identifier: Apache-2.0
// The valid name nearest to an invalid one, for error messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cafetiere {

/// The minimum number of insertions, deletions and replacements of a character and swaps of
/// neighbours that turn a into b, none of which touches a character twice.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate closest to `name`, or "" if none is close enough to be meant.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// `; did you mean "x"?` for the nearest candidate, or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace cafetiere
