// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/status.h"

namespace cafetiere {

/// 32 random bytes as text, which the ranks of a run share.
Result<std::string> random_secret();

}  // namespace cafetiere
