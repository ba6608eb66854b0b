// SPDX-License-Identifier: Apache-2.0
/** What a net of a table has learned each column as, and which columns it can score. */
package cafetiere.spark.kinds;
