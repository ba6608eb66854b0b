// SPDX-License-Identifier: Apache-2.0
/**
 * A tab in Spark's UI and in its History Server: the runs of an application, their curves and figures.
 * It is made of classes that Spark keeps to itself, of those that are the same on all its lines.
 */
package cafetiere.spark.ui;
