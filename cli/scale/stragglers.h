// SPDX-License-Identifier: Apache-2.0
// Stragglers: ranks whose iterations take a lognormal time wait for the slowest.
#pragma once

namespace cafetiere {

/// The mean of the largest of `ranks` independent lognormal values with median 1 and `spread`, the
/// standard deviation of their logarithm: the integral of e^(s z) N phi(z) Phi(z)^(N-1) over z (David
/// and Nagaraja, "Order Statistics", 2003, eq. 3.1.1), by the trapezoidal rule. e^(s^2/2) for one.
double mean_of_slowest(int ranks, double spread);

/// The spread of the sum of `count` such values, taken as lognormal too (Fenton, "The sum of
/// log-normal probability distributions in scatter transmission systems", 1960).
double spread_of_sum(double spread, int count);

}  // namespace cafetiere
