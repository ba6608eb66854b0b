// SPDX-License-Identifier: Apache-2.0
// Row passes: steps over the same rows of large tensors run together, one block of rows at a time,
// so that each step finds the results of the one before in the cache. The values are bitwise the
// same.
#pragma once

#include <cstddef>
#include <vector>

#include "core/device/program.h"

namespace cafetiere {

/// Whether neither step needs what the other writes, so that their order does not matter.
bool independent(const Step& a, const Step& b);

/// Marks the steps in [begin, end) that are joined to the one before. Small steps between two such
/// steps are moved after the second one if they are independent of it.
void join_rows(Program& program, size_t begin, size_t end);

/// The kernels of a step and of the steps joined to it.
class RowPass {
 public:
  /// `steps` are consecutive in the program; there may be just one.
  RowPass(const std::vector<const Step*>& steps, const Binder& binder);

  size_t size() const { return kernels_.size(); }
  /// A kernel that runs all of them.
  Kernel kernel() const;
  /// The same; also adds the nanoseconds of each step, over all threads, to `times` (one entry per
  /// step).
  Kernel timed_kernel(std::vector<int64_t>* times) const;

 private:
  std::vector<Kernel> kernels_;
  int64_t rows_ = 0, block_ = 0;
};

}  // namespace cafetiere
