// SPDX-License-Identifier: Apache-2.0
// How long a training's iterations take on many ranks, mode by mode.
#pragma once

#include "cli/scale/exchange_time.h"

namespace cafetiere {

/// One iteration of one shard on one rank.
struct Work {
  double seconds = 0;  ///< of computation: the median over ranks and iterations
  double rows = 0;     ///< of its batch
  double floats = 0;   ///< parameters
};

struct ScaleSetting {
  Link link;
  int ranks = 1;
  int shards_per_rank = 1;
  int ranks_per_host = 1;
  double wire_bytes = 4;
  double spread = 0.05;  ///< of a rank's seconds: the standard deviation of their logarithm
  /// Share of an iteration in which backward runs: beside that of the last shard the gradients
  /// travel, all but the last bucket of them; 0: nothing travels beside computation.
  double backward = 2.0 / 3;
  ExchangeKind exchange = ExchangeKind::kTree;
};

/// What a mode makes of a rank's time.
struct ModeTime {
  double compute = 0;     ///< seconds of an iteration's computation, as the slowest rank has it
  double exchange = 0;    ///< seconds that an iteration waits for numbers to travel, on average
  double efficiency = 0;  ///< rows/s of all ranks / (ranks * rows/s of one rank alone)
  double rows_per_s = 0;  ///< of all ranks, which report once a second
};

/// Seconds of one exchange of all parameters.
double exchange_seconds(const Work& work, const ScaleSetting& setting);

/// `allreduce`: every iteration waits for the slowest rank and for the part of an exchange that does
/// not travel beside backward: the sums, one bucket at least, then the new weights; and for what the
/// processor does meanwhile for those that do.
ModeTime allreduce_time(const Work& work, const ScaleSetting& setting);

/// `average` and `diloco`: the ranks wait for each other every `period` iterations, over which slow
/// and fast ones cancel out.
ModeTime average_time(const Work& work, const ScaleSetting& setting, int period);

/// `easgd`: an exchange every `period` iterations, and nobody waits for the slowest.
ModeTime easgd_time(const Work& work, const ScaleSetting& setting, int period);

/// What mode `auto` does: 1 for `allreduce`, else the period of `diloco`. Its bounds are AutoMode's.
int best_period(const Work& work, const ScaleSetting& setting);

/// The least number of shards a rank, a power of two up to `most`, with which `allreduce` spends at
/// most AutoMode::kCheapExchange of a step on the exchange; `most` where none does. More shards mean
/// more rows in each step: the price is a larger batch.
int best_shards_per_rank(const Work& work, ScaleSetting setting, int most = 64);

}  // namespace cafetiere
