// SPDX-License-Identifier: Apache-2.0
#include "core/observe/jsonl.h"

#include <utility>

namespace cafetiere {

Result<std::unique_ptr<JsonlSink>> JsonlSink::open(const std::string& path, Logger log) {
  CFT_ASSIGN(EventFile file, EventFile::open(path, "ae", "event log", std::move(log)));
  return std::unique_ptr<JsonlSink>(new JsonlSink(std::move(file)));
}

void JsonlSink::write(const Event& event) { file_.append(to_json(event) + "\n"); }

}  // namespace cafetiere
