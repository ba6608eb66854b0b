// SPDX-License-Identifier: Apache-2.0
/**
 * Everything that can be refused before a training starts. Used by {@code CaffeEstimator} and the
 * engines.
 */
package cafetiere.spark.preflight;
