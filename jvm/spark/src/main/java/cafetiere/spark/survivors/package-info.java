// SPDX-License-Identifier: Apache-2.0
/** The engine that goes on while executors come and go: its members, and the driver's list of them. */
package cafetiere.spark.survivors;
