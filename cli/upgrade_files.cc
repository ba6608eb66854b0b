// SPDX-License-Identifier: Apache-2.0
// upgrade_net_proto_text, upgrade_net_proto_binary, upgrade_solver_proto_text: files of older forms
// written anew in today's.
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/glog.h"
#include "core/model/file.h"
#include "core/model/parse_text.h"
#include "core/model/prototxt.h"
#include "core/model/upgrade.h"

namespace cafetiere {
namespace {

struct Files {
  std::string input, output;
};

using Upgrade = Status (*)(const Files&, const Logger&);

void tell(const std::vector<std::string>& notes, const std::string& path, const Logger& log) {
  if (notes.empty()) log.error("File already in latest proto format: {}", path);
  for (const std::string& note : notes) log.info("{}: {}", path, note);
}

/// Upgrades `net` and writes what `to_bytes` makes of it. A net that cannot be taken over whole is
/// written, too, but is an error.
Status upgrade_and_write(caffe::NetParameter& net, const Files& files, const char* form,
                         std::string (*to_bytes)(const caffe::NetParameter&), const Logger& log) {
  Result<NetUpgrade> upgrade = upgrade_net(&net);
  if (!upgrade.ok()) return upgrade.status().with_context(files.input);
  tell(upgrade->notes, files.input, log);
  CFT_TRY(write_file(files.output, to_bytes(net)));
  log.info("Wrote upgraded NetParameter {} proto to {}", form, files.output);
  if (upgrade->complete) return {};
  return invalid_argument(files.input +
                          ": fields that their layers do not have were left out, see above");
}

Status upgrade_net_text(const Files& files, const Logger& log) {
  CFT_ASSIGN(const std::string text, read_file(files.input));
  caffe::NetParameter net;
  CFT_TRY(parse_text(text, files.input, &net));
  return upgrade_and_write(
      net, files, "text", [](const caffe::NetParameter& n) { return to_text(n); }, log);
}

Status upgrade_net_binary(const Files& files, const Logger& log) {
  CFT_ASSIGN(const std::string bytes, read_file(files.input));
  caffe::NetParameter net;
  if (!net.ParseFromString(bytes)) {
    return invalid_argument(files.input + ": is not a binary NetParameter (.caffemodel)");
  }
  return upgrade_and_write(
      net, files, "binary", [](const caffe::NetParameter& n) { return n.SerializeAsString(); },
      log);
}

Status upgrade_solver_text(const Files& files, const Logger& log) {
  CFT_ASSIGN(const SolverText solver, read_solver(files.input));
  tell(solver.notes, files.input, log);
  CFT_TRY(write_file(files.output, to_text(solver.param)));
  log.info("Wrote upgraded SolverParameter text proto to {}", files.output);
  return {};
}

template <Upgrade kUpgrade>
Action add_upgrade(CLI::App& app) {
  const auto files = std::make_shared<Files>();
  app.add_option("INPUT", files->input, "the file to read")->required();
  app.add_option("OUTPUT", files->output, "the file to write")->required();
  return [files]() -> Status {
    Glog glog(stderr);
    return kUpgrade(*files, glog.logger());
  };
}

}  // namespace

Action add_upgrade_net_text(CLI::App& app) { return add_upgrade<upgrade_net_text>(app); }
Action add_upgrade_net_binary(CLI::App& app) { return add_upgrade<upgrade_net_binary>(app); }
Action add_upgrade_solver_text(CLI::App& app) { return add_upgrade<upgrade_solver_text>(app); }

}  // namespace cafetiere
