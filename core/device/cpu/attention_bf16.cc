// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/attention_bf16.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/device/bfloat16.h"
#include "core/device/cpu/attention_head.h"
#include "core/device/cpu/bf16_pack.h"
#include "core/device/cpu/bf16_product.h"
#include "core/device/cpu/fold.h"
#include "core/device/cpu/whole_pieces.h"
#include "core/device/transpose.h"

namespace cafetiere::attention_bf16 {
namespace {

constexpr int64_t kDepth = 32;   // numbers of tokens are rounded up to it
constexpr int64_t kColumns = 8;  // tokens per piece of transposed sums
const Version kRowsVersion(Layout::kChannels, Format::kBFloat16);

/// Hands out consecutive parts of a block's working memory, in whole cache lines.
class Memory {
 public:
  explicit Memory(float* at) : at_(at) {}
  float* floats(int64_t count) { return std::exchange(at_, at_ + rounded_up(count, 16)); }
  uint16_t* numbers(int64_t count) { return reinterpret_cast<uint16_t*>(floats(count / 2)); }

 private:
  float* at_;
};

/// Rows of numbers, `distance` apart.
struct Rows {
  const uint16_t* at;
  int64_t distance;

  const uint16_t* row(int64_t i) const { return at + i * distance; }
  Rows from(int64_t i) const { return {row(i), distance}; }
};

/// Pairs of rows, as Bf16Product requires: [row / 2][lane][2], lanes `lanes` apart.
struct Pairs {
  const uint16_t* at;
  int64_t lanes;
};

/// C(n x m) = [C +] B(n x k) A(k x m), row-major; m is a multiple of vectors.
void multiply(int64_t m, int64_t n, int64_t k, Pairs a, Rows b, float* c, int64_t ldc,
              bool add = false) {
  Bf16Product(m, n, k, a.lanes, b.distance, ldc, add)(&a.at, &b.at, c, 1);
}

/// Pairs of `rows` rows, with zeros for those up to `depth`.
void pair(Rows from, int64_t rows, int64_t depth, int64_t lanes, int64_t distance, uint16_t* to) {
  for (int64_t i = 0; i < depth; i += 2) {
    bf16::pair_rows(i < rows ? from.row(i) : nullptr, i + 1 < rows ? from.row(i + 1) : nullptr,
                    lanes, lanes, to + i * distance);
  }
}

/// Transposes `rows` rows of `width` numbers, with zeros for rows up to `depth`, to rows `distance`
/// apart.
void transpose(Rows from, int64_t rows, int64_t depth, int64_t width, int64_t distance,
               uint16_t* to) {
  for (int64_t i = 0; i < depth; i += 8) {
    const int64_t high = std::clamp<int64_t>(rows - i, 0, 8);
    for (int64_t k = 0; k < width; k += 8) {
      bf16::Eight tile[8] = {};
      for (int64_t r = 0; r < high; ++r) {
        std::memcpy(&tile[r], from.row(i + r) + k, sizeof tile[r]);
      }
      bf16::transpose(tile);
      for (int64_t r = 0; r < 8; ++r) {
        std::memcpy(to + (k + r) * distance + i, &tile[r], sizeof tile[r]);
      }
    }
  }
}

float dot(const uint16_t* a, const uint16_t* b, int64_t count) {
  return fold(
      count, 0.F, [=](int64_t k) { return from_bfloat16(a[k]) * from_bfloat16(b[k]); },
      [](float x, float y) { return x + y; });
}

/// The attention of one head of one sample at a time. Sums over tokens are up to a multiple of
/// kDepth, with zeros.
class Heads {
 public:
  explicit Heads(const AttentionGeometry& g)
      : g_(g), all_(rounded_up(g.tokens, kDepth)), tile_(rounded_up(attention_tile(g), kDepth)) {}

  /// Floats of working memory for forward() and backward().
  int64_t scratch() const {
    constexpr int64_t kLines = 16 * 16;  // parts are whole cache lines
    return all_ * (w_ * 7 / 2 + tile_ * 4) + tile_ * w_ * 2 + kColumns * w_ + kLines;
  }

  /// out = softmax(Q K^T / sqrt(width)) V; log_sums[token] keeps the logarithm of the softmax
  /// divisor of its row.
  void forward(int64_t pair_index, const uint16_t* qkv, uint16_t* out, float* log_sums,
               float* scratch) const {
    const AttentionHead h(g_, pair_index);
    Memory memory(scratch);
    uint16_t* const keys = memory.numbers(all_ * w_);
    uint16_t* const values = memory.numbers(all_ * w_);
    float* const scores = memory.floats(tile_ * all_);
    uint16_t* const weights = memory.numbers(tile_ * all_);
    float* const sums = memory.floats(tile_ * w_);
    pair_features(input(qkv + h.key), keys);
    pair(input(qkv + h.value), g_.tokens, all_, w_, w_, values);
    for (int64_t first = 0; first < g_.tokens; first += kAttentionTile) {
      const int64_t rows = rows_at(first), seen = seen_by(first + rows);
      multiply(seen, rows, w_, {keys, all_}, input(qkv + h.query).from(first), scores, all_);
      for (int64_t i = 0; i < rows; ++i) {
        float* const row = scores + i * all_;
        log_sums[h.log_sum + first + i] = softmax_.softmax(row_of(first + i, seen), row);
        narrow(row, seen, weights + i * all_);
      }
      multiply(w_, rows, seen, {values, w_}, {weights, all_}, sums, w_);
      put(sums, rows, out + h.out + first * g_.features(), g_.features());
    }
  }

  /// Computes dqkv from dout; out and log_sums are those of the forward pass.
  void backward(int64_t pair_index, const uint16_t* qkv, const uint16_t* out, const float* log_sums,
                const uint16_t* dout, uint16_t* dqkv, float* scratch) const {
    const AttentionHead h(g_, pair_index);
    Memory memory(scratch);
    uint16_t* const keys = memory.numbers(all_ * w_);
    uint16_t* const values = memory.numbers(all_ * w_);
    uint16_t* const token_keys = memory.numbers(all_ * w_);
    float* const value_diffs = memory.floats(all_ * w_);  // transposed, as key_diffs
    float* const key_diffs = memory.floats(all_ * w_);
    const Tile tile(memory, tile_, all_, w_);
    pair_features(input(qkv + h.key), keys);
    pair_features(input(qkv + h.value), values);
    pair(input(qkv + h.key), g_.tokens, all_, w_, w_, token_keys);
    std::fill_n(value_diffs, all_ * w_, 0.F);
    std::fill_n(key_diffs, all_ * w_, 0.F);
    for (int64_t first = 0; first < g_.tokens; first += kAttentionTile) {
      const int64_t rows = rows_at(first), seen = seen_by(first + rows);
      const int64_t depth = rounded_up(rows, kDepth);
      const Rows queries = input(qkv + h.query).from(first);
      const Rows dy = Rows{dout + h.out, g_.features()}.from(first);
      const Rows y = Rows{out + h.out, g_.features()}.from(first);
      multiply(seen, rows, w_, {keys, all_}, queries, tile.weights, all_);
      multiply(seen, rows, w_, {values, all_}, dy, tile.diffs, all_);
      for (int64_t i = 0; i < rows; ++i) {
        float* const weights = tile.weights + i * all_;
        float* const diffs = tile.diffs + i * all_;
        softmax_.backward(row_of(first + i, seen), log_sums[h.log_sum + first + i],
                          dot(dy.row(i), y.row(i), w_), weights, diffs);
        narrow(weights, seen, tile.weight_rows + i * all_);
        narrow(diffs, seen, tile.diff_rows + i * all_);
      }
      multiply(w_, rows, seen, {token_keys, w_}, {tile.diff_rows, all_}, tile.sums, w_);
      put(tile.sums, rows, dqkv + h.query + first * row(), row());

      pair({tile.weight_rows, all_}, rows, depth, seen, all_, tile.pairs);
      transpose(dy, rows, depth, w_, tile_, tile.turned);
      multiply(seen, w_, depth, {tile.pairs, all_}, {tile.turned, tile_}, value_diffs, all_, true);
      pair({tile.diff_rows, all_}, rows, depth, seen, all_, tile.pairs);
      transpose(queries, rows, depth, w_, tile_, tile.turned);
      multiply(seen, w_, depth, {tile.pairs, all_}, {tile.turned, tile_}, key_diffs, all_, true);
    }
    put_transposed(value_diffs, tile.piece, dqkv + h.value);
    put_transposed(key_diffs, tile.piece, dqkv + h.key);
  }

 private:
  /// Working memory of backward() for a tile of queries.
  struct Tile {
    float *weights, *diffs, *sums, *piece;
    uint16_t *weight_rows, *diff_rows, *pairs, *turned;

    Tile(Memory& memory, int64_t tile, int64_t all, int64_t width)
        : weights(memory.floats(tile * all)),
          diffs(memory.floats(tile * all)),
          sums(memory.floats(tile * width)),
          piece(memory.floats(kColumns * width)),
          weight_rows(memory.numbers(tile * all)),
          diff_rows(memory.numbers(tile * all)),
          pairs(memory.numbers(tile * all)),
          turned(memory.numbers(tile * width)) {}
  };

  int64_t row() const { return 3 * g_.features(); }
  Rows input(const uint16_t* first) const { return {first, row()}; }
  int64_t rows_at(int64_t first) const { return std::min(kAttentionTile, g_.tokens - first); }
  /// The number of tokens that those before `end` attend to.
  int64_t seen_by(int64_t end) const { return g_.causal ? rounded_up(end, kDepth) : all_; }
  AttentionRow row_of(int64_t token, int64_t tokens) const {
    return attention_row(g_, token, tokens);
  }

  /// [feature / 2][token][2]
  void pair_features(Rows from, uint16_t* to) const {
    const int64_t rest = all_ - g_.tokens;
    for (int64_t k = 0; k < w_; k += 2) {
      std::fill_n(to + k * all_ + 2 * g_.tokens, 2 * rest, uint16_t(0));
    }
    bf16::transpose_pairs(from.at, g_.tokens, w_ / 2, from.distance, to, all_);
  }

  /// Rounds rows of sums to rows `distance` apart.
  void put(const float* sums, int64_t rows, uint16_t* to, int64_t distance) const {
    for (int64_t i = 0; i < rows; ++i) narrow(sums + i * w_, w_, to + i * distance);
  }

  /// Rounds sums [feature][token] to the rows of tokens.
  void put_transposed(const float* sums, float* piece, uint16_t* to) const {
    for (int64_t token = 0; token < g_.tokens; token += kColumns) {
      transpose_tiles(sums + token, w_, kColumns, all_, piece, w_);
      put(piece, std::min(kColumns, g_.tokens - token), to + token * row(), row());
    }
  }

  AttentionGeometry g_;
  int64_t w_ = g_.width;
  int64_t all_, tile_;  ///< tokens, and queries in a tile, rounded up
  AttentionRows softmax_ = attention_rows();
};

/// A step that runs body(heads, pair, addresses of reads and writes, scratch) for all heads.
template <class Body>
void emit(Program& p, const std::string& name, const AttentionGeometry& g, double flops,
          std::vector<BufferId> reads, std::vector<BufferId> writes, Body body) {
  const Heads heads(g);
  const int64_t blocks = attention_blocks(g), floats = heads.scratch();
  Step step;
  step.name = name;
  step.kernel = "bfloat16, tiles of queries";
  step.flops = flops;
  step.reads = std::move(reads);
  step.writes = std::move(writes);
  const BufferId memory = p.scratch(blocks * floats);
  step.writes.push_back(memory);
  step.make = [=](const Binder& at) {
    float* const scratch = at(memory);
    return Kernel{int(blocks), [=, run = body(at)](int block) {
                    const bf16::TileScope scope;
                    for (int64_t pair = block; pair < g.pairs(); pair += blocks) {
                      run(heads, pair, scratch + block * floats);
                    }
                  }};
  };
  p.step(std::move(step));
}

}  // namespace

std::string declines(const AttentionGeometry& g) {
  return g.width % Bf16Product::kVector == 0 ? "" : "widths of heads that are no multiples of 16";
}

void forward(Program& p, const std::string& name, const AttentionGeometry& g, TensorId qkv,
             TensorId dst, TensorId log_sums) {
  const BufferId in = p.read(qkv, kRowsVersion), out = p.write(dst, kRowsVersion);
  const BufferId logs = p.write(log_sums, Layout::kRowMajor);
  emit(p, name, g, g.flops(), {in}, {out, logs}, [=](const Binder& at) {
    return [x = at.as<uint16_t>(in), y = at.as<uint16_t>(out), l = at(logs)](
               const Heads& heads, int64_t pair, float* scratch) {
      heads.forward(pair, x, y, l, scratch);
    };
  });
}

void backward(Program& p, const std::string& name, const AttentionGeometry& g, TensorId qkv,
              TensorId dst, TensorId log_sums, TensorId diff_dst, TensorId diff_qkv) {
  const BufferId in = p.read(qkv, kRowsVersion), out = p.read(dst, kRowsVersion);
  const BufferId logs = p.read(log_sums, Layout::kRowMajor);
  const BufferId diff = p.read(diff_dst, kRowsVersion), din = p.write(diff_qkv, kRowsVersion);
  emit(p, name, g, 2.5 * g.flops(), {in, out, logs, diff}, {din}, [=](const Binder& at) {
    return [x = at.as<uint16_t>(in), y = at.as<uint16_t>(out), l = at(logs),
            dy = at.as<uint16_t>(diff),
            dx = at.as<uint16_t>(din)](const Heads& heads, int64_t pair, float* scratch) {
      heads.backward(pair, x, y, l, dy, dx, scratch);
    };
  });
}

}  // namespace cafetiere::attention_bf16
