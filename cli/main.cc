// SPDX-License-Identifier: Apache-2.0
// cafetiere: trains, tests, times and explains nets from the command line, as Caffe's tool does.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cafetiere/c_api.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "core/capi/boundary.h"
#include "core/model/nearest.h"

namespace cafetiere {
namespace {

constexpr int kFailed = 1, kWrongUsage = 2;

struct Command {
  const char* name;
  const char* purpose;
  Action (*add)(CLI::App&);
};

constexpr Command kCommands[] = {
    {"train", "train a net, or resume its training", add_train},
    {"test", "score a trained net", add_test},
    {"time", "time each layer of a net, forward and backward", add_time},
    {"explain", "show the steps a net is compiled to, and its memory", add_explain},
    {"extract_features", "write blobs of a trained net to databases", add_extract_features},
    {"fit", "learn one column of a CSV from the others", add_fit},
    {"predict", "score the rows of a CSV file with a model of a table", add_predict},
    {"convert_imageset", "make a database from a list of images", add_convert_imageset},
    {"compute_image_mean", "compute the mean image of a database", add_compute_image_mean},
    {"convert_mnist", "make a database from MNIST's IDX files", add_convert_mnist},
    {"convert_mnist_data", "the same under Caffe's name", add_convert_mnist},
    {"convert_mnist_siamese_data", "make a database of pairs of digits", add_convert_mnist_pairs},
    {"convert_cifar_data", "make databases from CIFAR-10's binary files", add_convert_cifar},
    {"upgrade_net_proto_text", "write a net's text in today's form", add_upgrade_net_text},
    {"upgrade_net_proto_binary", "write weights in today's form", add_upgrade_net_binary},
    {"upgrade_solver_proto_text", "write a solver in today's form", add_upgrade_solver_text},
    {"export_onnx", "write a trained net as an ONNX model", add_export_onnx},
    {"import_onnx", "write an ONNX model as a net and its weights", add_import_onnx},
    {"convert_weights", "write weights in another form", add_convert_weights},
    {"check_nets", "check whether nets can be read here", add_check_nets},
    {"device_query", "show what this machine can compute with", add_device_query},
    {"doctor", "check whether this machine has what training on Spark needs", add_doctor},
    {"version", "show the version", add_version},
};

/// A command whose flags the parser knows.
struct Registered {
  CLI::App* app;
  Action run;
};

int wrong_usage(const std::string& message, const std::string& help) {
  fmt::print(stderr, "cafetiere: {} (see cafetiere {}--help)\n", message, help);
  return kWrongUsage;
}

/// What did not fit: an unknown command or flag, else what the parser says.
int explain_error(const CLI::App& app, const std::vector<Registered>& commands,
                  const CLI::ParseError& error) {
  for (const Registered& command : commands) {
    if (!command.app->parsed()) continue;
    const std::string& name = command.app->get_name();
    for (const std::string& extra : command.app->remaining()) {
      if (!extra.starts_with("-")) continue;
      std::vector<std::string> flags;
      for (const CLI::Option* option : command.app->get_options()) {
        for (const std::string& flag : option->get_lnames()) flags.push_back("--" + flag);
      }
      const std::string flag = extra.substr(0, extra.find('='));
      return wrong_usage(fmt::format("{} has no flag {}{}", name, flag, did_you_mean(flag, flags)),
                         name + " ");
    }
    return wrong_usage(fmt::format("{}: {}", name, error.what()), name + " ");
  }
  std::vector<std::string> names;
  for (const Registered& command : commands) names.push_back(command.app->get_name());
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return wrong_usage(error.what(), "");
  return wrong_usage(fmt::format("Unknown action: {}; the actions are {}{}", extras.front(),
                                 fmt::join(names, ", "), did_you_mean(extras.front(), names)),
                     "");
}

int run_program(const std::vector<std::string>& given) {
  CLI::App app("Trains and runs deep networks described by Caffe's files.", "cafetiere");
  app.set_version_flag("--version", std::string("cafetiere version ") + CFT_VERSION);
  std::vector<Registered> commands;
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.purpose);
    commands.push_back({sub, command.add(*sub)});
    names.emplace_back(command.name);
  }
  Result<std::vector<std::string>> read = read_flag_files(given);
  if (!read.ok()) return wrong_usage(read.status().message(), "");
  export_log_flags(&*read);
  const std::vector<std::string> arguments =
      help_arguments(normalise_arguments(*read, names), names);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& success) {  // help and version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return explain_error(app, commands, error);
  }
  for (const Registered& command : commands) {
    if (!command.app->parsed()) continue;
    const Status status = command.run();
    if (status.ok()) return 0;
    fmt::print(stderr, "cafetiere: {}\n", status.message());
    return kFailed;
  }
  fmt::print("{}", app.help());
  return 0;
}

}  // namespace
}  // namespace cafetiere

int cft_main(int count, const char* const* arguments) {
  int code = cafetiere::kFailed;
  if (const char* lack = cafetiere::capi::missing_feature()) {
    std::fprintf(stderr, "cafetiere: %s\n", lack);
    return code;
  }
  if (count < 0 || (count > 0 && !arguments)) {
    std::fprintf(stderr, "cafetiere: cft_main was given no arguments\n");
    return code;
  }
  const cafetiere::FloatMode mode(cafetiere::Denormals::kKept);
  const cafetiere::Status end = cafetiere::guard([&] {
    code = cafetiere::run_program({arguments + std::min(1, count), arguments + count});
  });
  // Such as memory that ran out in a library.
  if (!end.ok()) std::fprintf(stderr, "cafetiere: %s\n", end.message().c_str());
  // Before a host that has buffers of its own writes on.
  errno = 0;
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost || !end.ok()) return code;
  std::fprintf(stderr, "cafetiere: cannot write all of the output%s%s\n", errno ? ": " : "",
               errno ? std::strerror(errno) : "");
  return code == 0 ? cafetiere::kFailed : code;
}
