// SPDX-License-Identifier: Apache-2.0
#include "core/plan/final_gradients.h"

#include <algorithm>
#include <functional>
#include <map>

namespace cafetiere {

std::vector<const float*> final_gradients(const Program& program,
                                          const std::vector<void*>& addresses,
                                          const std::vector<float*>& gradients) {
  std::vector<const float*> waiting;  // last in the arena first: backward produces the first one
                                      // last
  for (const float* gradient : gradients) {
    if (gradient) waiting.push_back(gradient);
  }
  std::ranges::sort(waiting, std::greater<>());
  std::map<const void*, size_t> last_write;
  for (size_t i = 0; i < program.steps().size(); ++i) {
    for (BufferId id : program.steps()[i].writes) {
      last_write[addresses[size_t(id)]] = i;
    }
  }
  std::vector<const float*> final_from;
  auto next = waiting.begin();
  for (size_t i = 0; i < program.steps().size(); ++i) {
    const float* from = nullptr;
    for (; next != waiting.end(); ++next) {
      const auto write = last_write.find(*next);
      if (write != last_write.end() && write->second > i) break;
      from = *next;
    }
    final_from.push_back(from);
  }
  return final_from;
}

}  // namespace cafetiere
