// SPDX-License-Identifier: Apache-2.0
/** DeepSpark's files of raw images as a data source: PixelSource. */
package cafetiere.spark.pixels;
