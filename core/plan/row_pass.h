// SPDX-License-Identifier: Apache-2.0
// Row passes: steps over the same rows of large tensors are done together, a block of rows at a time,
// so that what one leaves the next one finds in the cache. Each step is computed as it would be alone:
// not a bit changes.
#pragma once

#include <cstddef>
#include <vector>

#include "core/device/program.h"

namespace cafetiere {

/// Neither step needs what the other writes, so that they may change places.
bool independent(const Step& a, const Step& b);

/// Marks the steps in [begin, end) that are joined to the one before. Small steps that stand between
/// two such steps, but do not depend on the second one nor it on them, are put off until after it.
void join_rows(Program& program, size_t begin, size_t end);

/// The kernels of a step and of those joined to it.
class RowPass {
 public:
  /// `steps` follow each other in the program; a single one is what it is.
  RowPass(const std::vector<const Step*>& steps, const Binder& binder);

  size_t size() const { return kernels_.size(); }
  /// The kernel that does them all.
  Kernel kernel() const;
  /// The same; adds each step's nanoseconds, in all threads, to `times`, which has one a step.
  Kernel timed_kernel(std::vector<int64_t>* times) const;

 private:
  std::vector<Kernel> kernels_;
  int64_t rows_ = 0, block_ = 0;
};

}  // namespace cafetiere
