// SPDX-License-Identifier: Apache-2.0
/**
 * From Spark's rows to the engine's bytes. Used by {@code plan}, {@code predict} and the engines.
 */
package cafetiere.spark.feed;
