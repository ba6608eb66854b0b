// SPDX-License-Identifier: Apache-2.0
#include "core/plan/concat_in_place.h"

#include <utility>
#include <vector>

#include "core/plan/buffer_uses.h"

namespace cafetiere {
namespace {

/// Lets a step write its result, of `bytes`, as a part of one of `whole` bytes.
void write_part(Step& step, const Part& part, int64_t bytes, int64_t whole) {
  step.kernel += ", into a concatenation";
  step.make = [make = std::exchange(step.make_part, nullptr), part](const Binder& at) {
    return make(at, part);
  };
  step.make_ending = nullptr;
  step.writes[0] = part.whole;
  step.unwritten = whole - bytes;
}

}  // namespace

size_t concat_in_place(Program& program, size_t begin, size_t end) {
  std::vector<Step>& steps = program.steps();
  BufferUses uses(program, begin, end);
  const auto bytes = [&](BufferId id) { return program.buffers()[size_t(id)].bytes; };
  std::vector<bool> empty(steps.size(), false);
  for (size_t i = begin; i < end; ++i) {
    Step& concat = steps[i];
    if (concat.parts.empty() || uses[concat.writes[0]].writes > 1) continue;
    std::vector<BufferId> copied;
    std::vector<Part> left;
    for (size_t p = 0; p < concat.parts.size(); ++p) {
      const BufferId id = concat.reads[p];
      const Part& part = concat.parts[p];
      Step& writer = steps[uses[id].writer];
      if (uses.is_between(id) && writer.make_part && writer.writes[0] == id) {
        write_part(writer, part, bytes(id), bytes(part.whole));
        concat.unwritten += bytes(id);
      } else {
        copied.push_back(id), left.push_back(part);
      }
    }
    empty[i] = copied.empty();
    concat.rows.reads = copied.size();
    concat.reads = std::move(copied), concat.parts = std::move(left);
  }
  return end - remove_steps(steps, empty);
}

}  // namespace cafetiere
