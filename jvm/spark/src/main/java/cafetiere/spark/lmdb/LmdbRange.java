// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.lmdb;

import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * A range of a database's keys, which one task reads.
 *
 * @param file the database's file
 * @param size its bytes
 * @param ahead the most bytes to read ahead at a time
 * @param from the first key; null for that of the first record
 * @param to the key behind the last one; null for the last record
 * @param hosts where its bytes are likely to be
 */
record LmdbRange(String file, long size, int ahead, byte[] from, byte[] to, List<String> hosts)
    implements InputPartition {
  @Override
  public String[] preferredLocations() {
    return hosts.toArray(new String[0]);
  }
}
