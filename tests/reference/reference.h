// SPDX-License-Identifier: Apache-2.0
// The reference library's side of a comparison: a process that is given files and leaves files.
#pragma once

#include <string>
#include <vector>

#include "tests/reference/arrays.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {

/// Whether tools/reference_caffe has built the program that runs the reference.
bool reference_is_there();

void write_text(const std::string& path, const std::string& text);

/// Which kernels the reference's matrix products use: a core type of OpenBLAS (empty: this
/// machine's) and a number of threads. In double precision a training shows what rounding hides.
struct ReferenceKernels {
  std::string core = {};
  int threads = 1;
  bool float64 = false;
};

/// Runs the reference with these arguments (see runner/caffe_runner.cc). Returns what it said when it
/// failed; empty when it did not.
std::string run_reference(const std::vector<std::string>& arguments,
                          const ReferenceKernels& kernels = {});

/// The largest difference over the largest expected magnitude (over 1 where all expected are 0);
/// infinite where the sizes differ or a value is not a number.
double relative_difference(const std::vector<float>& actual, const std::vector<float>& expected);

}  // namespace cafetiere
