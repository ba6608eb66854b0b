// SPDX-License-Identifier: Apache-2.0
/** Checkpoints in Hadoop's file systems. Used by {@code preflight} and the engines. */
package cafetiere.spark.store;
