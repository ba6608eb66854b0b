// SPDX-License-Identifier: Apache-2.0
/**
 * The engine of ordinary Spark jobs, one for each round of replicas. Used by {@code CaffeEstimator}.
 */
package cafetiere.spark.rounds;
