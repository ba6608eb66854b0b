// SPDX-License-Identifier: Apache-2.0
// Parts: a tensor split into consecutive parts along one axis, for Concat and Slice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/device/map.h"
#include "core/graph/layer.h"

namespace cafetiere {

/// A kernel that calls f(i) for i in [0, count), each call moving about `floats` floats.
template <class F>
Kernel over_rows(int64_t count, int64_t floats, F f) {
  const int64_t rows = std::max<int64_t>(1, kMapBlock / std::max<int64_t>(1, floats));
  const auto range = [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  };
  return {int((count + rows - 1) / rows),
          [=](int block) { range(block * rows, std::min(count, (block + 1) * rows)); }, range};
}

/// The axis of a ConcatParameter or SliceParameter, both of which have a deprecated name for it.
inline Result<int> parts_axis(const Shape& shape, bool has_axis, int axis, bool has_old,
                              uint32_t old) {
  if (has_axis && has_old) {
    return invalid_argument("give axis or its older form (concat_dim, slice_dim), not both");
  }
  return shape.axis(has_old ? int(old) : axis);
}

class Parts {
 public:
  /// Parts of these shapes along `axis`. Channels are split in the layout of `like`, whichever it
  /// is; other axes only in row-major order.
  Parts(const Program& program, const std::vector<Shape>& shapes, int axis, TensorId like)
      : version_(axis == 1 ? program.layout(like) : Layout::kRowMajor, program.format(like)) {
    for (const Shape& shape : shapes) {
      int64_t size = shape.count(axis);
      outer_ = shape.count(0, axis);
      if (axis == 1) {
        const ChannelView view(shape, version_.layout);
        outer_ = view.outer, size = view.channels * view.inner;
      }
      runs_.push_back({stride_, size});
      stride_ += size;
    }
  }

  /// Concatenates the parts into `whole`; kNoTensor stands for a part of zeros. A part without
  /// memory is left out: another step writes it (Step::parts).
  void join(Program& program, std::string name, const std::vector<TensorId>& parts,
            TensorId whole) const {
    Step step = start(std::move(name));
    std::vector<int> source;  // per part: its index in step.reads, -1 for zeros
    for (TensorId id : parts) {
      source.push_back(id == kNoTensor ? -1 : int(step.reads.size()));
      if (id != kNoTensor) step.reads.push_back(program.read(id, version_));
    }
    step.rows.reads = step.reads.size();
    step.writes = {program.write(whole, version_)};
    if (version_.layout == Layout::kChannels && step.reads.size() == parts.size()) {
      for (const Run& run : runs_) step.parts.push_back({step.writes[0], run.offset, stride_});
    }
    step.make = [self = *this, source, reads = step.reads, write = step.writes[0],
                 bytes = format_size(version_.format)](const Binder& at) {
      std::vector<const std::byte*> from;
      for (int s : source) from.push_back(s < 0 ? nullptr : at.as<std::byte>(reads[size_t(s)]));
      std::byte* to = at.as<std::byte>(write);
      return over_rows(self.outer_, self.stride_, [=](int64_t o) {
        for (size_t i = 0; i < from.size(); ++i) {
          const int64_t offset = self.runs_[i].offset * bytes, size = self.runs_[i].size * bytes;
          std::byte* const run = to + o * self.stride_ * bytes + offset;
          if (from[i])
            std::copy_n(from[i] + o * size, size, run);
          else if (source[i] < 0)
            std::fill_n(run, size, std::byte(0));  // zero in every format
        }
      });
    };
    program.step(std::move(step));
  }

  /// Copies part i of `whole` to `part`.
  void cut(Program& program, std::string name, TensorId whole, size_t i, TensorId part) const {
    Step step = start(std::move(name));
    step.reads = {program.read(whole, version_)};
    step.rows.reads = 1;
    step.writes = {program.write(part, version_)};
    step.make = [outer = outer_, stride = stride_, run = runs_[i], read = step.reads[0],
                 write = step.writes[0], bytes = format_size(version_.format)](const Binder& at) {
      const std::byte* from = at.as<std::byte>(read);
      std::byte* to = at.as<std::byte>(write);
      return over_rows(outer, run.size, [=](int64_t o) {
        std::copy_n(from + (o * stride + run.offset) * bytes, run.size * bytes,
                    to + o * run.size * bytes);
      });
    };
    program.step(std::move(step));
  }

 private:
  /// A part's elements within one stride of the whole.
  struct Run {
    int64_t offset, size;
  };

  Step start(std::string name) const {
    Step step;
    step.name = std::move(name);
    step.kernel = std::string("copy ") + layout_name(version_.layout);
    step.rows = {.count = outer_, .width = stride_};
    return step;
  }

  Version version_;
  int64_t outer_ = 1, stride_ = 0;
  std::vector<Run> runs_;
};

}  // namespace cafetiere
