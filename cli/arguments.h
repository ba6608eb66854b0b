// SPDX-License-Identifier: Apache-2.0
// Command lines as people write them for Caffe, brought to the form the parser takes.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

/// Puts the lines of the files that -flagfile names in the place of that flag: one flag a line, `#`
/// begins a comment.
Result<std::vector<std::string>> read_flag_files(const std::vector<std::string>& arguments);

/// Takes glog's flags (-minloglevel, -log_dir, -logtostderr, ...) out of `arguments` and puts their
/// values into the environment as GLOG_<flag>, where glog looks for them too.
void export_log_flags(std::vector<std::string>* arguments);

/// -flag becomes --flag; a command that comes after flags moves to the front.
std::vector<std::string> normalise_arguments(const std::vector<std::string>& arguments,
                                             const std::vector<std::string>& commands);

/// `help` and `help COMMAND` as --help and COMMAND --help; of a word that is no command, the word.
std::vector<std::string> help_arguments(std::vector<std::string> arguments,
                                        const std::vector<std::string>& commands);

}  // namespace cafetiere
