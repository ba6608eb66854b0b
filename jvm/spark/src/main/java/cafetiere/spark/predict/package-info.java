// SPDX-License-Identifier: Apache-2.0
/** What the tasks of {@code CaffeModel.transform} do. */
package cafetiere.spark.predict;
