// SPDX-License-Identifier: Apache-2.0
#include "core/observe/event_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/observe/jsonl.h"
#include "core/observe/tensorboard.h"

namespace cafetiere {

Result<std::unique_ptr<EventSink>> open_event_files(const std::string& prefix, Logger log) {
  std::filesystem::path folder = std::filesystem::path(prefix).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return io_error(
        fmt::format("cannot make the folder '{}' for the event files: {}; choose "
                    "another prefix",
                    folder.string(), error.message()));
  }
  CFT_ASSIGN(auto jsonl, JsonlSink::open(prefix + ".jsonl", log));
  CFT_ASSIGN(auto tensorboard, TensorBoardSink::open(folder.string(), std::move(log)));
  auto both = std::make_unique<Broadcast>();
  both->add(std::move(jsonl));
  both->add(std::move(tensorboard));
  return std::unique_ptr<EventSink>(std::move(both));
}

}  // namespace cafetiere
