// SPDX-License-Identifier: Apache-2.0
/** CaffeOnSpark's SequenceFiles of images: a table of them is SequenceImages.read. */
package cafetiere.spark.sequence;
