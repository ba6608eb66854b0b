// SPDX-License-Identifier: Apache-2.0
// When an EASGD worker exchanges with the center variable, and at which rates.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// A value that is multiplied by `rate` every `step` iterations, at most `limit` times.
struct Decay {
  float start = 1, rate = 1;
  int step = -1;   ///< <= 0: never
  int limit = -1;  ///< < 0: no limit

  float at(int64_t iterations) const;
};

/// moving_rate and how it decays.
Decay moving_rate(const caffe::SyncParameter& sync);
/// server_factor and how it decays.
Decay server_factor(const caffe::SyncParameter& sync);

/// A worker's iterations since its last exchange. With a fixed period an exchange is due after
/// `period` iterations. With an adaptive one only the first is due then, later ones when the losses
/// since the last exchange exceed the sum of that first window, so that the windows grow as the
/// loss falls.
class ExchangeClock {
 public:
  ExchangeClock(int period, bool adaptive) : period_(period), adaptive_(adaptive) {}

  /// After an iteration.
  void tick(double loss) {
    ++since_;
    losses_ += loss;
  }
  bool due() const { return budget_ ? losses_ > *budget_ : since_ >= period_; }
  /// Iterations until an exchange may be due; at least one.
  int remaining() const { return budget_ || since_ >= period_ ? 1 : period_ - since_; }
  /// Iterations since the last exchange.
  int since() const { return since_; }
  /// Whether there was one.
  bool running() const { return since_ > 0; }
  void exchanged();

 private:
  const int period_;
  const bool adaptive_;
  int since_ = 0;
  double losses_ = 0;
  std::optional<double> budget_;  // of an adaptive period, from the first exchange on
};

}  // namespace cafetiere
