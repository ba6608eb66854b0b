// SPDX-License-Identifier: Apache-2.0
/** Folders that replace others when they are whole. */
package cafetiere.spark.output;
