// SPDX-License-Identifier: Apache-2.0
/**
 * Small things without a home: JSON, files by Hadoop path, the nearest name, checks of params. Used by
 * all other packages.
 */
package cafetiere.spark.util;
