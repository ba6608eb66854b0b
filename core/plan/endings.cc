// SPDX-License-Identifier: Apache-2.0
#include "core/plan/endings.h"

#include <utility>
#include <vector>

#include "core/plan/buffer_uses.h"

namespace cafetiere {
namespace {

class Endings {
 public:
  Endings(Program& program, size_t begin, size_t end)
      : program_(program), begin_(begin), end_(end), uses_(program, begin, end) {}

  size_t run() {
    std::vector<bool> merged(steps().size(), false);
    for (size_t i = begin_; i < end_; ++i) {
      const Step& sum = steps()[i];
      if (sum.rule != Rule::kSum || uses_[sum.writes[0]].writes > 1) continue;
      const int term = later_term(sum);
      if (term < 0) continue;
      Ending ending{sum.reads[size_t(1 - term)], sum.writes[0], false};
      merged[i] = true;
      if (const size_t relu = relu_of(ending.result); relu < end_) {
        ending.result = steps()[relu].writes[0], ending.relu = true;
        merged[relu] = true;
      }
      end_with(steps()[uses_[sum.reads[size_t(term)]].writer], ending);
    }
    return end_ - remove_steps(steps(), merged);
  }

 private:
  std::vector<Step>& steps() { return program_.steps(); }

  /// The term of a sum, 0 or 1, whose step can add the other one, which is there already; -1: none.
  int later_term(const Step& sum) {
    for (int term : {0, 1}) {
      const BufferId own = sum.reads[size_t(term)], other = sum.reads[size_t(1 - term)];
      if (own == other || !uses_.is_between(own)) continue;
      const BufferUse &from = uses_[own], &added = uses_[other];
      const bool there = added.writes == 0 || (added.writes == 1 && added.writer < from.writer);
      if (there && steps()[from.writer].make_ending) return term;
    }
    return -1;
  }

  /// The step that is the ReLU of a sum and its only reader; otherwise the end.
  size_t relu_of(BufferId sum) {
    const size_t reader = uses_[sum].reader;
    const bool is_relu = uses_.is_between(sum) && reader < end_ &&
                         steps()[reader].rule == Rule::kRelu &&
                         uses_[steps()[reader].writes[0]].writes == 1;
    return is_relu ? reader : end_;
  }

  void end_with(Step& step, const Ending& ending) {
    step.kernel += ending.relu ? ", with a sum and its ReLU" : ", with a sum";
    step.make = [make = std::exchange(step.make_ending, nullptr), ending](const Binder& at) {
      return make(at, ending);
    };
    step.make_part = nullptr;
    step.reads.insert(step.reads.begin(), ending.addend);
    step.writes = {ending.result};
    if (step.rows.count > 0) ++step.rows.reads;
    step.in_place = 1;
    uses_[ending.result].writer = size_t(&step - steps().data());
  }

  Program& program_;
  const size_t begin_, end_;
  BufferUses uses_;
};

}  // namespace

size_t merge_endings(Program& program, size_t begin, size_t end) {
  return Endings(program, begin, end).run();
}

}  // namespace cafetiere
