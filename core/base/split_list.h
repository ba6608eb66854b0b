// SPDX-License-Identifier: Apache-2.0
// Comma separated lists, as flags and Caffe's `weights` are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cafetiere {

/// The parts of a comma separated list, without the spaces around them; none for an empty text.
std::vector<std::string> split_list(std::string_view text);

}  // namespace cafetiere
