// SPDX-License-Identifier: Apache-2.0
#include "cli/flags.h"

#include "cli/machine.h"

namespace cafetiere {

void StateFlags::add(CLI::App& app) {
  app.add_option("--level", level, "level of the net, compared with min_level and max_level");
  app.add_option("--stage", stages, "stages of the net, separated by commas");
}

void StateFlags::apply(caffe::NetState* state) const {
  state->set_level(level);
  for (const std::string& stage : split_list(stages)) state->add_stage(stage);
}

void add_precision(CLI::App& app, std::string* precision) {
  app.add_option(
         "--precision", *precision,
         "of products and activations: float32, bf16x6 (float32, with wide products through "
         "AMX), bf16, auto (bf16 where the processor has AMX) or auto_float32 (bf16x6 where "
         "its AMX is fast just now); default: the solver's, which is float32")
      ->check(CLI::IsMember({"float32", "bf16x6", "bf16", "auto", "auto_float32"}));
}

void DeviceFlags::add(CLI::App& app) {
  app.add_option("--gpu", gpu, "GPU ids or 'all'; GPUs are not supported yet, so the CPU is used");
  app.add_option("--threads", threads, "threads to compute with (default: all cores)")
      ->check(CLI::Range(1, 1024));
}

int DeviceFlags::thread_count() const { return threads > 0 ? threads : usable_cores(); }

void DeviceFlags::report(const Logger& log, bool solver_wants_gpu) const {
  if (!gpu.empty() || solver_wants_gpu) {
    log.warning("GPUs are not supported yet; the CPU is used instead of what {} asks for",
                gpu.empty() ? "solver_mode" : "-gpu");
  }
  log.info("Use CPU.");
}

}  // namespace cafetiere
