// SPDX-License-Identifier: Apache-2.0
/**
 * What Spark does not promise to keep, and nothing else: what a new line of Spark may break is here.
 * Used by whatever meets Spark's rows, executors and failures.
 */
package cafetiere.spark.internal;
