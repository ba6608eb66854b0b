// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import cafetiere.core.Rows;
import java.util.Arrays;
import org.apache.spark.unsafe.Platform;

/** Takes the rows out of chunks that the net cannot take, each judged by its own bytes alone. */
final class RowFilter implements AutoCloseable {
  private static final int FIRST_ROOM = 256;

  private final Rows.Check check;
  private long[] ends = new long[FIRST_ROOM];
  private byte[] good = new byte[FIRST_ROOM];
  private int rows;
  private int judged;
  private long skipped;
  private String why = "";

  RowFilter(FeedSchema schema) {
    this.check = new Rows.Check(schema.checkJson());
  }

  /** A row of the chunk ends at this offset. */
  void rowEnds(long at) {
    if (rows == ends.length) ends = Arrays.copyOf(ends, 2 * rows);
    ends[rows++] = at;
  }

  /** Closes the gaps that bad rows leave in a chunk; returns how many rows are in it then. */
  long apply(Chunk chunk) {
    if (good.length < rows) good = new byte[ends.length];
    String first = check.run(rows, chunk.address(), chunk.size(), good);
    if (why.isEmpty()) why = first;
    long kept = 0;
    long to = 0;
    for (int i = 0; i < rows; i++) {
      if (good[i] == 0) continue;
      long from = i == 0 ? 0 : ends[i - 1];
      long bytes = ends[i] - from;
      if (from != to) {
        Platform.copyMemory(null, chunk.address() + from, null, chunk.address() + to, bytes);
      }
      to += bytes;
      kept++;
    }
    chunk.truncate(to);
    skipped += rows - kept;
    judged = rows;
    rows = 0;
    return kept;
  }

  /** Where the rows of the last chunk are among those that are left, -1 for bad ones. */
  int[] places() {
    int[] places = new int[judged];
    int place = 0;
    for (int i = 0; i < judged; i++) places[i] = good[i] == 0 ? -1 : place++;
    return places;
  }

  /** Bad rows so far. */
  long skipped() {
    return skipped;
  }

  /** What is wrong with the first of them. */
  String why() {
    return why;
  }

  @Override
  public void close() {
    check.close();
  }
}
