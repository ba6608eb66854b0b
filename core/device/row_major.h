// SPDX-License-Identifier: Apache-2.0
// Steps on row-major tensors, for operations written as loops over axes.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/device/map.h"

namespace cafetiere {

/// The addresses of a step's tensors, nullptr for kNoTensor, and the context of the run.
struct RowMajor {
  std::vector<const float*> in;
  std::vector<float*> out;
  const RunContext* run;
};

/// A step that reads and writes row-major tensors; make(addresses) returns its kernel.
template <class Make>
void row_major_step(Program& p, std::string name, const char* kernel,
                    const std::vector<TensorId>& in, const std::vector<TensorId>& out, Make make,
                    double flops = 0) {
  Step step;
  step.name = std::move(name);
  step.kernel = kernel;
  step.flops = flops;
  step.space = p.space_of(step);
  const Version version(Layout::kRowMajor, Format::kFloat32, step.space);
  for (TensorId id : in) {
    step.reads.push_back(id == kNoTensor ? -1 : p.read(id, version));
  }
  for (TensorId id : out) {
    step.writes.push_back(id == kNoTensor ? -1 : p.write(id, version));
  }
  step.make = [=, reads = step.reads, writes = step.writes](const Binder& at) {
    RowMajor addresses{{}, {}, at.run()};
    for (BufferId id : reads) addresses.in.push_back(id < 0 ? nullptr : at(id));
    for (BufferId id : writes) addresses.out.push_back(id < 0 ? nullptr : at(id));
    return make(addresses);
  };
  std::erase(step.reads, -1);
  std::erase(step.writes, -1);
  p.step(std::move(step));
}

/// A step with a single block, for short or sequential work: body(in, out, run).
template <class Body>
void serial_step(Program& p, std::string name, const std::vector<TensorId>& in,
                 const std::vector<TensorId>& out, Body body, double flops = 0,
                 const char* kernel = "serial") {
  row_major_step(
      p, std::move(name), kernel, in, out,
      [=](const RowMajor& at) {
        return Kernel{1, [=](int) { body(at.in, at.out, *at.run); }};
      },
      flops);
}

/// Divides `count` independent items of equal cost into blocks, each of about kMapBlock floats of
/// the largest tensor.
struct Ranges {
  int64_t count, items;  ///< in total, per block

  Ranges(const Program& p, const std::vector<TensorId>& tensors, int64_t count) : count(count) {
    int64_t floats = 1;
    for (TensorId id : tensors) {
      if (id != kNoTensor) floats = std::max(floats, p.shape(id).count());
    }
    items = std::max<int64_t>(1, kMapBlock * count / floats);
  }
  int blocks() const { return int((count + items - 1) / items); }
  int64_t begin(int block) const { return block * items; }
  int64_t end(int block) const { return std::min(count, begin(block) + items); }
};

/// A step over `count` independent items of equal cost: calls body(begin, end, in, out, run) for
/// each block of Ranges.
template <class Body>
void range_step(Program& p, std::string name, const std::vector<TensorId>& in,
                const std::vector<TensorId>& out, int64_t count, Body body) {
  std::vector<TensorId> tensors = in;
  tensors.insert(tensors.end(), out.begin(), out.end());
  const Ranges ranges(p, tensors, count);
  row_major_step(p, std::move(name), "ranges", in, out, [=](const RowMajor& at) {
    return Kernel{ranges.blocks(), [=](int block) {
                    body(ranges.begin(block), ranges.end(block), at.in, at.out, *at.run);
                  }};
  });
}

}  // namespace cafetiere
