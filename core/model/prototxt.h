// SPDX-License-Identifier: Apache-2.0
// Nets and solvers as text: parsing, with errors that contain the position, and printing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// A net parsed from text, upgraded to the current `layer` form.
struct NetText {
  caffe::NetParameter param;
  std::string source;                      ///< the file, or a name given by the caller
  std::vector<int> layer_lines;            ///< 1-based line where param.layer(i) begins
  std::vector<std::string> notes;          ///< upgrades from older forms, for the log
  std::vector<std::string> warnings = {};  ///< fields that have no effect here, each once
};

/// A solver parsed from text; embedded nets are upgraded too.
struct SolverText {
  caffe::SolverParameter param;
  std::string source;
  std::vector<std::string> notes;
  std::vector<std::string> warnings = {};  ///< like NetText's
};

/// Parses a net. Errors read `source:line:column: what is wrong; what may be meant`.
Result<NetText> parse_net(std::string_view text, std::string source);
/// Reads and parses a net's file; "File not found: F" if it does not exist.
Result<NetText> read_net(const std::string& path);

/// Parses a solver; errors as in parse_net.
Result<SolverText> parse_solver(std::string_view text, std::string source);
/// Reads and parses a solver's file.
Result<SolverText> read_solver(const std::string& path);

/// The text form of a net, a solver or a part of one.
std::string to_text(const google::protobuf::Message& message);

}  // namespace cafetiere
