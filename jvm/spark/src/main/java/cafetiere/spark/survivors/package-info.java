// SPDX-License-Identifier: Apache-2.0
/**
 * The engine that goes on while executors come and go: its members, and the driver's list of them. Used
 * by {@code barrier}, whose {@code TrainingJob} begins and ends a run of either kind.
 */
package cafetiere.spark.survivors;
