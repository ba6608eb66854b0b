// SPDX-License-Identifier: Apache-2.0
// The explanation of a net in the C interface.
#include <fmt/format.h>

#include "cli/busy_limits.h"
#include "cli/explanation.h"
#include "core/capi/boundary.h"
#include "core/capi/options.h"

namespace cafetiere {
namespace {

Result<Subject> subject_of(const char* text) {
  CFT_ASSIGN(capi::Options o, capi::Options::parse(text));
  Subject subject;
  const std::string phase = o.text("phase", "TRAIN");
  subject.batch = int(o.number("batch", 0, 0, 1 << 20));
  subject.level = int(o.number("level", 0, INT32_MIN, INT32_MAX));
  subject.stages = o.texts("stages");
  for (const auto& [name, sizes] : o.shapes("shapes")) subject.shapes.emplace(name, Shape(sizes));
  CFT_ASSIGN(capi::TrainingText training, capi::take_training(o));
  if (phase != "TRAIN" && phase != "TEST") {
    return invalid_argument("option \"phase\" must be TRAIN or TEST");
  }
  subject.train = phase == "TRAIN";
  subject.has_solver = training.has_solver;
  subject.solver = std::move(training.solver);
  if (training.has_net) subject.net = std::move(training.net);
  return subject;
}

}  // namespace
}  // namespace cafetiere

namespace capi = cafetiere::capi;

int cft_step_seconds(const char* options, int threads, int passes, int ranks, double* out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&]() -> cafetiere::Status {
    if (threads < 1) return cafetiere::invalid_argument("threads must be at least 1");
    if (passes < 1) return cafetiere::invalid_argument("passes must be at least 1");
    if (ranks < 1) return cafetiere::invalid_argument("ranks must be at least 1");
    CFT_ASSIGN(cafetiere::Subject subject, cafetiere::subject_of(options));
    CFT_ASSIGN(subject.limits, cafetiere::busy_limits(threads));
    CFT_ASSIGN(const cafetiere::Explanation explained, cafetiere::explain(subject, {}));
    *out = passes * explained.least_seconds / subject.limits->training +
           explained.update_seconds / ranks;
    return {};
  });
}

int cft_explain(const char* options, char** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&]() -> cafetiere::Status {
    CFT_ASSIGN(const cafetiere::Subject subject, cafetiere::subject_of(options));
    std::string notes;
    const cafetiere::Logger log([&](cafetiere::LogLevel level, std::string_view text) {
      if (level >= cafetiere::LogLevel::kWarning) notes += fmt::format("note: {}\n", text);
    });
    CFT_ASSIGN(const cafetiere::Explanation explained, cafetiere::explain(subject, log));
    return capi::give_text(notes + explained.text, out);
  });
}
