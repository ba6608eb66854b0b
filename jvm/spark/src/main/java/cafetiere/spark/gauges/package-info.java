// SPDX-License-Identifier: Apache-2.0
/** Runs in Spark's metrics system. */
package cafetiere.spark.gauges;
