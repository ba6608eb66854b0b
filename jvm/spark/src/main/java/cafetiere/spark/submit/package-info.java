// SPDX-License-Identifier: Apache-2.0
/** The command line behind {@code Submit}: its flags, tables and tasks. */
package cafetiere.spark.submit;
