// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.keyed;

/**
 * What a fit of nets of keys tells, and where.
 *
 * @param owner uid of the estimator
 * @param events path prefix of the files of events, "" for none
 * @param pricePerCoreHour for the account; 0 where none is known
 * @param epochs of each net; 0 where their number depends on a key's rows
 */
public record KeyedReport(String owner, String events, double pricePerCoreHour, int epochs) {}
