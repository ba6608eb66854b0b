// SPDX-License-Identifier: Apache-2.0
// CenterVariable: the weights to which EASGD's workers are coupled, stored in one slice per rank.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "core/sync/easgd_schedule.h"

namespace cafetiere {

/// One rank's part of the center variable: its own slice, and those it takes over from lost ranks.
/// Thread-safe unless a function says otherwise; exchanges are serialized, so none is lost.
class CenterVariable {
 public:
  /// Floats [begin, end) of the arena.
  struct Range {
    size_t begin, end;
    size_t size() const { return end - begin; }
  };

  /// For rank `rank` of `workers`; each exchanges about every `period` iterations of `sync`.
  CenterVariable(const caffe::SyncParameter& sync, int rank, int workers, int64_t floats);

  int slices() const { return int(offsets_.size()) - 1; }
  Range range(int slice) const { return {offsets_[size_t(slice)], offsets_[size_t(slice) + 1]}; }
  /// Floats of the largest slice.
  size_t largest() const;

  /// Sets this rank's slice and the worker's weights.
  void start(std::span<const float> weights);
  /// Iterations that each worker had done before this run; the rates decay from there.
  void count_from(int64_t iter);

  /// Stores the weights of this rank's worker. A slice that is taken over starts from them.
  void remember(std::span<const float> weights);
  /// The weights last stored; only for the thread that calls remember().
  std::span<const float> worker() const { return worker_; }

  /// One exchange: W <- (1 - a f) W + a f w, where `values` are the worker's w on entry and the
  /// center's previous W on return; a is the moving rate, f the server's factor.
  void exchange(int slice, std::span<float> values);
  /// Copies the current values of a slice.
  void read(int slice, std::span<float> values);

  /// Exchanges that this rank served, by slice.
  std::vector<int64_t> served() const;

 private:
  struct Slice {
    std::vector<float> values;
    int64_t inherited = 0;  // estimate of the exchanges that another rank served
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
