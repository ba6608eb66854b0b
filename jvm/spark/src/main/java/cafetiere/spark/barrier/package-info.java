// SPDX-License-Identifier: Apache-2.0
/** The engine of one barrier stage, whose ranks form a group. Used by {@code CaffeEstimator}. */
package cafetiere.spark.barrier;
