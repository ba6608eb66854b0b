// SPDX-License-Identifier: Apache-2.0
// Lossy all-reduce (mean) of gradients. The part that a step omits is kept and added to the next
// gradient (error feedback), so nothing is lost permanently. Results are bitwise the same only for
// the same number of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/comm/group.h"
#include "core/comm/shard_tree.h"

namespace cafetiere {

/// A parameter in the arena as a matrix: its first axis by all others.
struct MatrixRange {
  size_t offset = 0;
  size_t rows = 0, cols = 0;
};

/// Turns each rank's gradient into the mean over the ranks. Every rank calls the same functions.
class Compressor {
 public:
  virtual ~Compressor() = default;

  /// `gradient` is this rank's on entry and the mean on return.
  virtual Status mean(std::span<float> gradient) = 0;

  /// Bytes that a call of mean() sends to each peer, compressed.
  virtual size_t bytes() const = 0;

  /// The error feedback of this rank; part of a checkpoint.
  std::span<float> error() { return error_; }
  /// Other state that mean() starts from: equal on all ranks, smaller than a gradient.
  virtual std::span<float> factors() { return {}; }

 protected:
  Compressor(Group* group, size_t floats) : group_(group), error_(floats, 0.f) {}

  Group* const group_;
  std::vector<float> error_;
};

/// PowerSGD (Vogels, Karimireddy and Jaggi 2019): one step of power iteration per matrix, starting
/// from the factor of the previous step. Floats outside the matrices, and matrices that are not
/// larger than their two factors, are sent uncompressed.
class PowerSgd : public Compressor {
 public:
  /// `rank` columns per factor, at least 1. `matrices` must not overlap. The initial factors are
  /// drawn with `seed`, which must be equal on all ranks.
  PowerSgd(Group* group, size_t floats, std::span<const MatrixRange> matrices, int rank,
           uint64_t seed);

  Status mean(std::span<float> gradient) override;
  size_t bytes() const override;
  std::span<float> factors() override { return second_; }

 private:
  /// Where a matrix and its factors are stored: p is rows x rank, q is rank x cols.
  struct Factors {
    MatrixRange matrix;
    size_t p, q;
  };

  Status average(std::span<float> values, TreeSum* sum);

  const size_t rank_;
  std::vector<Factors> factors_;
  std::vector<MatrixRange> plain_;  // contiguous ranges, sent uncompressed
  std::vector<float> first_;        // all p, then the plain ranges
  std::vector<float> second_;       // all q
  size_t p_floats_ = 0;
  std::unique_ptr<TreeSum> first_sum_, second_sum_;
};

/// Top-k: each rank sends the k values of largest magnitude with their indices (Aji and Heafield
/// 2017).
class TopK : public Compressor {
 public:
  /// k = ceil(density * floats), at least 1; 0 < density <= 1, fewer than 2^32 floats.
  TopK(Group* group, size_t floats, double density);

  Status mean(std::span<float> gradient) override;
  size_t bytes() const override { return chosen_.size() * sizeof(Entry); }

 private:
  struct Entry {
    uint32_t place;
    float value;
  };

  void choose();

  std::vector<Entry> chosen_, all_;  // of this rank, of all ranks
  std::vector<float> magnitudes_;
};

}  // namespace cafetiere
