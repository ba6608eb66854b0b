// SPDX-License-Identifier: Apache-2.0
/** LevelDBs as a data source. */
package cafetiere.spark.leveldb;
