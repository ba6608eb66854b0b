// SPDX-License-Identifier: Apache-2.0
// A log file beside the lines on the screen, named as glog names it.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace cafetiere {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using LogFile = std::unique_ptr<std::FILE, FileCloser>;

/// Creates <folder>/caffe.<host>.<user>.log.INFO.<date>-<time>.<pid> with glog's head, and makes
/// <folder>/caffe.INFO point at it, which is where scripts look. Null when it cannot be written.
LogFile open_log_file(const std::string& folder);

}  // namespace cafetiere
