// SPDX-License-Identifier: Apache-2.0
/**
 * What a fit finds in the cluster: slots, addresses, ports, instruction sets, and which executors live.
 * Used by {@code plan}, {@code preflight} and the engines.
 */
package cafetiere.spark.cluster;
