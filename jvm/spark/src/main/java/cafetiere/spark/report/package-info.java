// SPDX-License-Identifier: Apache-2.0
/** Tells users of a run. */
package cafetiere.spark.report;
