// SPDX-License-Identifier: Apache-2.0
/** A net for each key of a table: trained and scored in ordinary tasks, a key after another. */
package cafetiere.spark.keyed;
