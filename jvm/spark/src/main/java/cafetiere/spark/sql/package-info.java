// SPDX-License-Identifier: Apache-2.0
/** Trained nets as functions of SQL. */
package cafetiere.spark.sql;
