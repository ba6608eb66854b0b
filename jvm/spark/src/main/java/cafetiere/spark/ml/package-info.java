// SPDX-License-Identifier: Apache-2.0
/** Estimators for tables of numbers, texts and dates, which need no word of Caffe's. */
package cafetiere.spark.ml;
