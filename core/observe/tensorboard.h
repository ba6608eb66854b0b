// SPDX-License-Identifier: Apache-2.0
// TensorBoardSink: scalars as a TensorBoard event file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/observe/event_file.h"
#include "core/observe/events.h"

namespace cafetiere {

/// CRC-32C (Castagnoli) of `bytes`, as the record format wants it.
uint32_t crc32c(std::string_view bytes);

/// One record of the file: length, its masked CRC, payload, its masked CRC.
std::string tfrecord(std::string_view payload);

/// Writes `events.out.tfevents.<time>.<pid>` in a folder. Tags are `train/<name>` and
/// `test/<name>`; each event is flushed, so that a running TensorBoard follows.
class TensorBoardSink : public EventSink {
 public:
  static Result<std::unique_ptr<TensorBoardSink>> open(const std::string& folder, Logger log = {});

  void progress(const Progress& event) override;
  void test(const TestResult& event) override;
  const std::string& path() const { return path_; }

 private:
  TensorBoardSink(EventFile file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  void write(std::string_view event);
  void write_scalars(int64_t step, const std::string& prefix, const NamedValues& values);

  EventFile file_;
  std::string path_;
  TestNames names_;
};

}  // namespace cafetiere
