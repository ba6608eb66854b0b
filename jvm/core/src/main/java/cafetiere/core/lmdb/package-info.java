// SPDX-License-Identifier: Apache-2.0
/** LMDB databases: read by ranges of keys from wherever the caller reads bytes, and written. */
package cafetiere.core.lmdb;
