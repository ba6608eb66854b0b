// SPDX-License-Identifier: Apache-2.0
/**
 * Encrypted lines of text between tasks and the driver, where Spark has no connection that a task can
 * use. Used by {@code cluster}, {@code events}, {@code survivors} and {@code rounds}.
 */
package cafetiere.spark.line;
