// SPDX-License-Identifier: Apache-2.0
// What tests of passes over a program's steps have in common: programs, random ones and those of
// residual blocks, and what running them leaves.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/device/program.h"
#include "tests/layers/harness.h"

namespace cafetiere::test {

constexpr int64_t kRows = 40;
/// Of a step that leaves sums of rows.
constexpr Rows kSums{.count = kRows, .width = 8, .block = 16, .writes = false};

/// A program of steps by rows, of which only the order matters.
struct Order {
  Program program;

  BufferId buffer(int64_t floats = kRows * 8) { return program.scratch(floats); }
  /// Reads `rows` row by row and `wholes` as a whole.
  void step(const std::string& name, std::vector<BufferId> rows, std::vector<BufferId> wholes,
            std::vector<BufferId> writes, Rows kind = {.count = kRows, .width = 8}) {
    Step step;
    step.name = name;
    step.rows = kind;
    step.rows.reads = rows.size();
    step.reads = std::move(rows);
    step.reads.insert(step.reads.end(), wholes.begin(), wholes.end());
    step.writes = std::move(writes);
    program.step(std::move(step));
  }
};

/// Runs placed steps, each pass as one kernel, and gives the values of the buffers that are kept.
std::vector<float> run(const Program& program, int threads);

/// Element-wise steps, sums of channels and steps that use the sums, in any order; the same for the
/// same seed.
Program random_program(unsigned seed, Device& device);

/// A residual block as ResNet's are written, with fields of its BatchNorm and Scale layers.
std::string residual_block(const std::string& norm, const std::string& scale,
                           const std::vector<int64_t>& dims = {9, 16, 7, 5});

/// What a plan leaves, its steps and its memory.
struct Figured {
  Figures figures;
  std::vector<StepInfo> steps;
  int64_t bytes = 0;
};

/// All that two passes leave, forward and, if asked for, backward, the second one accumulating.
Figured figures_of(const std::string& layers, Device& device, int threads, PlanOptions options,
                   bool backward = true);

}  // namespace cafetiere::test
