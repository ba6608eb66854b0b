// SPDX-License-Identifier: Apache-2.0
/** Data sources of files in the forms that data sets come in: IDX, CIFAR's binaries, tars of images. */
package cafetiere.spark.files;
