// SPDX-License-Identifier: Apache-2.0
/** The files of a saved model: where they are, and that no model is written over those it needs. */
package cafetiere.spark.saved;
