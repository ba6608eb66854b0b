// SPDX-License-Identifier: Apache-2.0
/** What a training would do and take. Used by the estimators' {@code explain}. */
package cafetiere.spark.explain;
