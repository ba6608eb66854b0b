// SPDX-License-Identifier: Apache-2.0
/**
 * LMDB as a data source of Spark: {@code spark.read().format("lmdb")} reads Caffe's databases by ranges
 * of keys from any Hadoop path, {@code write().format("lmdb")} makes them. Begin with LmdbSource.
 */
package cafetiere.spark.lmdb;
