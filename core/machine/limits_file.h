// SPDX-License-Identifier: Apache-2.0
// The file that keeps what was measured.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/machine/limits.h"

namespace cafetiere {

/// Where a user's programs keep such things: below $XDG_CACHE_HOME or ~/.cache; empty without a home.
std::string limits_file();

/// The limits that the file has under `key`; else, or with `anew`, calls `measure` and keeps what it gives
/// there, beside those of other keys. A file that cannot be written is no error: the next program measures
/// again.
Result<MachineLimits> cached_limits(const std::string& file, const std::string& key, bool anew,
                                    const std::function<Result<MachineLimits>()>& measure);

nlohmann::json json_of(const MachineLimits& limits);

}  // namespace cafetiere
