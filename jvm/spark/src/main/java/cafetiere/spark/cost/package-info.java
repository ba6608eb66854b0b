// SPDX-License-Identifier: Apache-2.0
/** What a training has cost, and what it would. */
package cafetiere.spark.cost;
