// SPDX-License-Identifier: Apache-2.0
/** Nets that name their own files: tables of these, and nets that tables feed: RowNet. */
package cafetiere.spark.netfiles;
