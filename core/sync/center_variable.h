// SPDX-License-Identifier: Apache-2.0
// CenterVariable: the weights that asynchronous workers share, stored in one slice per rank.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace cafetiere {

/// One rank's part of the center variable: its own slice, and those it takes over from lost ranks.
/// Thread-safe unless a function says otherwise; changes are serialized, so none is lost. Its values
/// are doubles: in sums of many small updates floats would lose some.
class CenterVariable {
 public:
  /// Floats [begin, end) of the arena.
  struct Range {
    size_t begin, end;
    size_t size() const { return end - begin; }
  };
  /// Changes the values of a slice; `count`: how often it was changed, this time included. Of a slice
  /// that was taken over, the changes on the lost rank are estimated.
  using Change = std::function<void(std::span<double> values, int64_t count)>;

  /// For rank `rank` of `workers`.
  CenterVariable(int rank, int workers, int64_t floats);

  int slices() const { return int(offsets_.size()) - 1; }
  Range range(int slice) const { return {offsets_[size_t(slice)], offsets_[size_t(slice) + 1]}; }
  /// Floats of the largest slice.
  size_t largest() const;

  /// Sets this rank's slice and the worker's weights.
  void start(std::span<const float> weights);

  /// Stores the weights of this rank's worker. A slice that is taken over starts from them.
  void remember(std::span<const float> weights);
  /// The weights last stored; only for the thread that calls remember().
  std::span<const float> worker() const { return worker_; }

  /// Calls `use` on a slice.
  void change(int slice, const Change& use);
  /// Copies the current values of a slice.
  void read(int slice, std::span<float> values);

  /// Changes that this rank made, by slice.
  std::vector<int64_t> served() const;

 private:
  struct Slice {
    std::vector<double> values;
    int64_t inherited = 0;  // estimate of the changes that another rank made
    int64_t served = 0;
  };
  Slice& at(int slice);

  const int rank_;
  const std::vector<size_t> offsets_;

  mutable std::mutex mutex_;  // guards what follows
  std::vector<float> worker_;
  std::map<int, Slice> kept_;
};

}  // namespace cafetiere
