// SPDX-License-Identifier: Apache-2.0
#include "core/plan/param_updates.h"

#include <algorithm>
#include <map>
#include <utility>

namespace cafetiere {
namespace {

constexpr int64_t kSmall = 256 << 10;         ///< bytes; smaller gradients wait for the end
constexpr int64_t kPiece = int64_t{1} << 14;  ///< floats of a parameter per block

struct Item {
  size_t param;
  BufferId data, gradient;
  int64_t count;
  bool is_written;
};

/// Part of an item.
struct Piece {
  size_t param;
  float* gradient;
  int64_t begin, end;
  bool is_written;
};

Kernel update_kernel(const std::vector<Item>& items, const Binder& at) {
  std::vector<Piece> pieces;
  for (const Item& item : items) {
    for (int64_t begin = 0; begin < item.count; begin += kPiece) {
      const int64_t end = std::min(item.count, begin + kPiece);
      pieces.push_back({item.param, at(item.gradient), begin, end, item.is_written});
    }
  }
  const int blocks = int(pieces.size());
  return {blocks, [pieces = std::move(pieces), run = at.run()](int block) {
            const auto& [param, gradient, begin, end, is_written] = pieces[size_t(block)];
            const std::span<float> piece(gradient + begin, size_t(end - begin));
            if (!is_written) std::ranges::fill(piece, 0.F);
            if (run->update) run->update->apply(param, begin, piece);
          }};
}

Step update_step(const std::string& name, std::vector<Item> items) {
  Step step;
  step.name = name + " update";
  step.kernel = "the solver's rule";
  for (const Item& item : items) {
    (item.is_written ? step.reads : step.writes).push_back(item.gradient);
    step.reads.push_back(item.data);
    step.writes.push_back(item.data);
  }
  step.make = [items = std::move(items)](const Binder& at) { return update_kernel(items, at); };
  return step;
}

/// For each buffer, the last step that uses it, the number of uses, and whether it is written.
class Uses {
 public:
  explicit Uses(const Program& program) : uses_(program.buffers().size()) {
    const std::vector<Step>& steps = program.steps();
    for (size_t i = 0; i < steps.size(); ++i) {
      for (BufferId id : steps[i].reads) add(id, int(i));
      for (BufferId id : steps[i].writes) {
        add(id, int(i));
        uses_[size_t(id)].is_written = true;
      }
    }
  }
  int last(BufferId id) const { return uses_[size_t(id)].last; }
  bool is_written(BufferId id) const { return uses_[size_t(id)].is_written; }
  bool is_used_once(BufferId id) const { return uses_[size_t(id)].count == 1; }

 private:
  struct Use {
    int last = -1, count = 0;
    bool is_written = false;
  };
  void add(BufferId id, int step) {
    uses_[size_t(id)].last = step;
    ++uses_[size_t(id)].count;
  }

  std::vector<Use> uses_;
};

/// Whether a step is not part of a row pass with others.
bool is_alone(const std::vector<Step>& steps, size_t i) {
  return !steps[i].joined && (i + 1 == steps.size() || !steps[i + 1].joined);
}

/// Turns the step that makes a parameter's gradient into one that updates the parameter with it.
Step stepping(Step step, const SteppedParam& p) {
  step.kernel += ", the solver's rule";
  step.reads.push_back(p.data);
  step.writes = {p.data};
  step.make = [make = std::move(step.make_update), param = p.index](const Binder& at) {
    return make(at, param);
  };
  step.make_update = nullptr;
  return step;
}

}  // namespace

void add_param_updates(Program& program, size_t first_backward,
                       const std::vector<SteppedParam>& params) {
  const Uses uses(program);
  std::vector<Step> steps = std::move(program.steps());
  std::map<size_t, std::vector<Step>> before;  // keyed by step
  std::vector<bool> moved(steps.size(), false);
  std::vector<Item> small;
  for (const SteppedParam& p : params) {
    const int64_t bytes = program.buffers()[size_t(p.gradient)].bytes;
    const Item item{p.index, p.data, p.gradient, bytes / int64_t(sizeof(float)),
                    uses.is_written(p.gradient)};
    program.adopt(p.gradient);
    if (bytes < kSmall) {
      small.push_back(item);
      continue;
    }
    const int last = uses.last(p.gradient);
    size_t at = size_t(std::max(uses.last(p.data), last) + 1);
    at = std::max(at, first_backward);
    while (at < steps.size() && steps[at].joined) ++at;
    if (uses.is_used_once(p.gradient) && steps[size_t(last)].make_update &&
        is_alone(steps, size_t(last))) {
      moved[size_t(last)] = true;
      before[at].push_back(stepping(std::move(steps[size_t(last)]), p));
    } else {
      before[at].push_back(update_step(p.name, {item}));
    }
  }
  if (!small.empty()) before[steps.size()].push_back(update_step("small parameters'", small));
  std::vector<Step> all;
  for (size_t i = 0; i <= steps.size(); ++i) {
    for (Step& update : before[i]) all.push_back(std::move(update));
    if (i < steps.size() && !moved[i]) all.push_back(std::move(steps[i]));
  }
  program.steps() = std::move(all);
}

}  // namespace cafetiere
