// SPDX-License-Identifier: Apache-2.0
// The files that a run leaves about itself.
#pragma once

#include <memory>
#include <string>

#include "core/observe/events.h"

namespace cafetiere {

/// A sink that writes PREFIX.jsonl and a TensorBoard file in the same folder; the folder is made
/// when it is missing. `log` is told, once a file, when one can be written no longer.
Result<std::unique_ptr<EventSink>> open_event_files(const std::string& prefix, Logger log = {});

}  // namespace cafetiere
