// SPDX-License-Identifier: Apache-2.0
// CenterVariable: the weights that the workers of EASGD pull at and are pulled to, in slices that the ranks
// keep.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "core/sync/easgd_schedule.h"

namespace cafetiere {

/// What one rank keeps of the centre: its own slice, and those it takes over from ranks that are
/// lost. From any thread but where it says otherwise; exchanges come one after another, so none is
/// overwritten by another.
class CenterVariable {
 public:
  /// Floats [begin, end) of the arena.
  struct Range {
    size_t begin, end;
    size_t size() const { return end - begin; }
  };

  /// `workers` ranks of which this is `rank`; each exchanges every `period` iterations or so.
  CenterVariable(const caffe::SyncParameter& sync, int rank, int workers, int64_t floats);

  int slices() const { return int(offsets_.size()) - 1; }
  Range range(int slice) const { return {offsets_[size_t(slice)], offsets_[size_t(slice) + 1]}; }
  /// Floats of the largest slice.
  size_t largest() const;

  /// Sets this rank's slice, and the worker's weights; `iter`: iterations that went before.
  void start(std::span<const float> weights);
  /// The iterations that each worker had done when this training began; the rates decay from there.
  void count_from(int64_t iter);

  /// Takes note of this rank's worker. A slice that is taken over starts from it.
  void remember(std::span<const float> weights);
  /// What was remembered; for the thread that calls remember().
  std::span<const float> worker() const { return worker_; }

  /// One exchange: W <- (1 - a f) W + a f w, where `values` are the worker's w on entry and the
  /// centre's W from before on return; a is the moving rate, f the server's factor.
  void exchange(int slice, std::span<float> values);
  /// Copies a slice as it is now.
  void read(int slice, std::span<float> values);

  /// Exchanges that this rank served, by slice.
  std::vector<int64_t> served() const;

 private:
  struct Slice {
    std::vector<float> values;
    int64_t inherited = 0;  // exchanges that another rank served, as far as this one can tell
    int64_t served = 0;
  };
  Slice& at(int slice);

  const int rank_, workers_, period_;
  const Decay rate_, factor_;
  const std::vector<size_t> offsets_;

  mutable std::mutex mutex_;  // guards what follows
  int64_t first_iter_ = 0;
  std::vector<float> worker_;
  std::map<int, Slice> kept_;
};

}  // namespace cafetiere
