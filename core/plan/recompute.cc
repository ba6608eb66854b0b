// SPDX-License-Identifier: Apache-2.0
#include "core/plan/recompute.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/plan/row_pass.h"

namespace cafetiere {
namespace {

constexpr size_t kSoon = 24;  ///< steps to look ahead; bounds the search

using Renames = std::map<BufferId, BufferId>;

/// A copy of the step with its buffers renamed.
Step renamed(Step step, const Renames& names) {
  Renames used;
  for (std::vector<BufferId>* ids : {&step.reads, &step.writes}) {
    for (BufferId& id : *ids) {
      const auto found = names.find(id);
      if (found == names.end()) continue;
      used.insert(*found);
      id = found->second;
    }
  }
  if (used.empty()) return step;
  step.make = [make = std::move(step.make), used = std::move(used)](const Binder& at) {
    std::vector<void*> addresses = at.addresses();
    for (const auto& [from, to] : used) addresses[size_t(from)] = at.addresses()[size_t(to)];
    return make(Binder(addresses, at.run()));
  };
  return step;
}

class Recomputing {
 public:
  Recomputing(Program& program, size_t first_backward, int64_t least_bytes)
      : program_(program),
        begin_(int(first_backward)),
        least_bytes_(least_bytes),
        uses_(program.buffers().size()) {
    const std::vector<Step>& steps = program_.steps();
    for (int i = 0; i < int(steps.size()); ++i) {
      for (BufferId id : steps[size_t(i)].reads) read(id, i);
      for (BufferId id : steps[size_t(i)].writes) {
        Use& use = uses_[size_t(id)];
        use.writer = use.writes++ == 0 ? i : -1;
        use.last = i;
      }
    }
    again_.assign(uses_.size(), false);
    for (int i = 0; i < begin_; ++i) {
      for (BufferId id : steps[size_t(i)].writes) again_[size_t(id)] = is_worth_it(id);
    }
  }

  void run() {
    const std::vector<Step> steps = std::move(program_.steps());
    forward_.assign(steps.begin(), steps.begin() + begin_);
    done_ = forward_;
    for (size_t i = size_t(begin_); i < steps.size(); ++i) {
      const bool by_row = steps[i].rows.count > 1;
      if (!by_row && in_pass_) catch_up();
      const auto needs = [&](const Step* other) { return !independent(*other, steps[i]); };
      if (std::ranges::any_of(put_off_, needs) || (!by_row && can_wait(steps, i))) {
        put_off_.push_back(&steps[i]);
        continue;
      }
      const bool computed = emit(steps[i]);
      in_pass_ = by_row && (in_pass_ || (computed && !put_off_.empty()));
    }
    catch_up();
    program_.steps() = std::move(done_);
  }

 private:
  /// The only step that writes a buffer, or -1; the number of writes; the first backward step that
  /// reads it, or -1; the last step that uses it.
  struct Use {
    int writer = -1, writes = 0, backward = -1, last = -1;
  };

  void read(BufferId id, int step) {
    Use& use = uses_[size_t(id)];
    if (step >= begin_ && use.backward < 0) use.backward = step;
    use.last = step;
  }

  bool is_worth_it(BufferId id) const {
    const Buffer& buffer = program_.buffers()[size_t(id)];
    Search search{.when = uses_[size_t(id)].backward};
    if (search.when < 0 || buffer.bytes < least_bytes_ || !can_be_computed(id, &search)) {
      return false;
    }
    // In bfloat16 a result takes half the memory and products half the time or less, so that sums,
    // which read a large buffer for each term, cost too much for what they save.
    return buffer.format == Format::kFloat32 || search.large.size() <= 1;
  }

  /// A search for what a result is recomputed from at backward step `when`: the buffers visited,
  /// and the large ones that are read.
  struct Search {
    int when;
    std::set<BufferId> seen{}, large{};
  };

  /// Whether all inputs of the buffer are available at a backward step, or can be recomputed then.
  /// Each buffer is visited once: any seen before either can be computed, or the search has failed
  /// already.
  bool can_be_computed(BufferId id, Search* search) const {
    if (!search->seen.insert(id).second) return true;
    const Buffer& buffer = program_.buffers()[size_t(id)];
    const int writer = uses_[size_t(id)].writer;
    if (writer < 0 || writer >= begin_ || buffer.external || buffer.keep || buffer.fixed) {
      return false;
    }
    const Step& step = program_.steps()[size_t(writer)];
    return step.space == Space::kHost && !step.costly && step.rows.count > 1 && step.rows.writes &&
           step.writes.size() == 1 && std::ranges::all_of(step.reads, [&](BufferId of) {
             if (is_there(of, search->when)) {
               if (program_.buffers()[size_t(of)].bytes >= least_bytes_) search->large.insert(of);
               return true;
             }
             return uses_[size_t(of)].backward < 0 && can_be_computed(of, search);
           });
  }

  bool is_there(BufferId id, int when) const {
    const Buffer& buffer = program_.buffers()[size_t(id)];
    const Use& use = uses_[size_t(id)];
    if (buffer.external) return use.writes == 0;
    return buffer.fixed || buffer.keep || (use.last >= when && !again_[size_t(id)]);
  }

  bool is_missing(BufferId id) const { return again_[size_t(id)] && !names_.contains(id); }

  /// Whether a step by rows that reads the same missing result follows soon and does not depend on
  /// this step. The copy then shares a pass with that step, as when a weight gradient yields to
  /// that of a ReLU.
  bool can_wait(const std::vector<Step>& steps, size_t i) const {
    const auto& reads = steps[i].reads;
    const auto wanted = [&](BufferId id) {
      return is_missing(id) && std::ranges::find(reads, id) != reads.end();
    };
    if (std::ranges::none_of(reads, wanted)) return false;
    std::vector<const Step*> waiting{&steps[i]};
    for (size_t k = i + 1; k < std::min(steps.size(), i + kSoon); ++k) {
      const Step& step = steps[k];
      const auto needs = [&](const Step* other) { return !independent(*other, step); };
      const bool waits = std::ranges::any_of(waiting, needs);
      const size_t by_row = step.rows.count > 1 ? step.rows.reads : 0;
      if (std::ranges::any_of(std::span(step.reads).first(by_row), wanted)) return !waits;
      if (waits) waiting.push_back(&step);
    }
    return false;
  }

  void catch_up() {
    for (const Step* step : std::exchange(put_off_, {})) emit(*step);
    in_pass_ = false;
  }

  /// Emits a step, preceded by those that recompute its missing inputs; returns whether there were
  /// any.
  bool emit(const Step& step) {
    const size_t before = names_.size();
    for (BufferId id : step.reads) {
      if (is_missing(id)) compute(id, uses_[size_t(id)].backward);
    }
    done_.push_back(renamed(step, names_));
    return names_.size() > before;
  }

  /// Emits the step that computes a buffer, preceded by those for inputs missing at a backward
  /// step.
  void compute(BufferId id, int when) {
    if (names_.contains(id)) return;
    Step step = forward_[size_t(uses_[size_t(id)].writer)];
    for (BufferId of : step.reads) {
      if (!is_there(of, when)) compute(of, when);
    }
    const Buffer& buffer = program_.buffers()[size_t(id)];
    names_[id] = program_.scratch(buffer.bytes / format_size(buffer.format), buffer.format);
    step.name += " again";
    done_.push_back(renamed(std::move(step), names_));
  }

  Program& program_;
  const int begin_;  // first backward step
  const int64_t least_bytes_;
  std::vector<Use> uses_;    // per buffer
  std::vector<bool> again_;  // per buffer: it is recomputed
  std::vector<Step> forward_, done_;
  std::vector<const Step*> put_off_;  // until the end of the pass that reads their missing results
  bool in_pass_ = false;
  Renames names_;  // original buffers to their recomputed copies
};

}  // namespace

void recompute_rows(Program& program, size_t first_backward, int64_t least_bytes) {
  Recomputing(program, first_backward, least_bytes).run();
}

}  // namespace cafetiere
