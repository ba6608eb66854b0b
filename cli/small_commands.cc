// SPDX-License-Identifier: Apache-2.0
// The commands that need a few lines each: convert_mnist, device_query, version.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/convert_mnist.h"
#include "cli/glog.h"
#include "cli/machine.h"

namespace cafetiere {

namespace {

template <decltype(convert_mnist)* kConvert>
Action add_mnist(CLI::App& app, const char* default_backend) {
  struct Flags {
    std::string images, labels, db, backend;
  };
  const auto flags = std::make_shared<Flags>();
  flags->backend = default_backend;
  app.add_option("images", flags->images, "IDX file of images, gzipped or not")->required();
  app.add_option("labels", flags->labels, "IDX file of labels, gzipped or not")->required();
  app.add_option("db", flags->db, "the database to create")->required();
  app.add_option("--backend", flags->backend,
                 fmt::format("lmdb or leveldb (default: {})", default_backend))
      ->check(CLI::IsMember({"lmdb", "leveldb"}));
  return [flags]() -> Status {
    Glog glog(stderr);
    CFT_ASSIGN(const DbBackend backend, parse_db_backend(flags->backend));
    return kConvert(flags->images, flags->labels, flags->db, backend, glog.logger());
  };
}

}  // namespace

Action add_convert_mnist(CLI::App& app) { return add_mnist<convert_mnist>(app, "lmdb"); }
Action add_convert_mnist_pairs(CLI::App& app) {
  return add_mnist<convert_mnist_pairs>(app, "leveldb");  // as Caffe's example has it
}

Action add_device_query(CLI::App& app) {
  const auto gpu = std::make_shared<std::string>();
  app.add_option("--gpu", *gpu, "GPU ids or 'all', as Caffe has it");
  return [gpu]() -> Status {
    fmt::print("CPU:              {}\n", cpu_name());
    fmt::print("Cores:            {}\n", usable_cores());
    fmt::print("Instruction sets: {}\n", fmt::join(instruction_sets(), ", "));
    fmt::print("GPUs:             not supported yet\n");
    return {};
  };
}

Action add_version(CLI::App&) {
  return []() -> Status {
    fmt::print("cafetiere version {}\n", CFT_VERSION);
    return {};
  };
}

}  // namespace cafetiere
