// SPDX-License-Identifier: Apache-2.0
/**
 * A run's events on their way from rank 0 to the driver, its console and its files. Used by the
 * engines; {@code CafetierePlugin} is one of the routes.
 */
package cafetiere.spark.events;
