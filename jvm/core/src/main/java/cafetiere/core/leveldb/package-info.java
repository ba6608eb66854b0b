// SPDX-License-Identifier: Apache-2.0
/** LevelDBs of this machine, read from the first record to the last. */
package cafetiere.core.leveldb;
