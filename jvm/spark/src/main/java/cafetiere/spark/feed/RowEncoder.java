// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import cafetiere.core.CafetiereException;
import cafetiere.core.Rows;
import cafetiere.spark.internal.SparkInternals;
import java.util.Iterator;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Encodes rows into native memory and hands them on in chunks. The memory is reused, and nothing is
 * allocated for a row. Rows that the net cannot take end it, or are left out where the schema says so.
 */
public final class RowEncoder implements AutoCloseable {
  /** Takes `rows` encoded rows that lie at `address`; the memory is reused afterwards. */
  public interface Sink {
    /** Takes one chunk. */
    void accept(long rows, long address, long bytes);
  }

  private static final Logger LOG = LoggerFactory.getLogger(RowEncoder.class);
  private static final long CHUNK_BYTES = 1 << 20;
  private static final long HEADROOM_BYTES = 1 << 16;

  private final FeedSchema schema;
  private final ColumnType.Writer[] writers;
  private final boolean[] mayBeMissing;
  private final int[] own; // where the columns are in rows of the schema itself
  private final Sink sink;
  private final long chunkBytes;
  private final RowFilter filter; // null where bad rows end the job
  private final Chunk chunk = new Chunk(CHUNK_BYTES + HEADROOM_BYTES);
  private UnsafeProjection projection;
  private long rowsInChunk;
  private long rows;

  /** An encoder that hands on about a MiB at a time. */
  public RowEncoder(FeedSchema schema, Sink sink) {
    this(schema, sink, CHUNK_BYTES);
  }

  /** An encoder that hands on chunks of `chunkBytes` or a row more. */
  public RowEncoder(FeedSchema schema, Sink sink, long chunkBytes) {
    this.schema = schema;
    this.writers = new ColumnType.Writer[schema.types().size()];
    this.mayBeMissing = schema.mayBeMissing();
    for (int i = 0; i < writers.length; i++) {
      writers[i] = schema.types().get(i).writer(schema.table().fields()[i].dataType());
    }
    this.own = IntStream.range(0, writers.length).toArray();
    this.sink = sink;
    this.chunkBytes = chunkBytes;
    this.filter = schema.skipsBadRows() ? new RowFilter(schema) : null;
  }

  /**
   * Encodes all rows of a partition of `schema.select(table)` into a native table; returns how many bad
   * ones it has left out.
   */
  public static long feed(FeedSchema schema, Iterator<InternalRow> partition, Rows to) {
    try (RowEncoder encoder = new RowEncoder(schema, to::append)) {
      while (partition.hasNext()) {
        encoder.add(partition.next());
      }
      encoder.flush();
      return encoder.skipped();
    }
  }

  /** Encodes one row whose columns are exactly those of the schema. */
  public void add(InternalRow row) {
    add(row instanceof UnsafeRow unsafe ? unsafe : project(row), own);
  }

  /** Encodes one row of another schema; {@code ordinals} tells where this one's columns are in it. */
  public void add(UnsafeRow row, int[] ordinals) {
    long start = chunk.size();
    for (int i = 0; i < writers.length; i++) {
      if (mayBeMissing[i] && row.isNullAt(ordinals[i])) {
        chunk.payload(0);
        continue;
      }
      long at = chunk.size();
      try {
        requireValue(row.isNullAt(ordinals[i]));
        writers[i].write(row, ordinals[i], chunk);
      } catch (IllegalArgumentException e) {
        if (isLeftEmpty(i, at)) continue;
        chunk.truncate(start);
        int id = schema.idOrdinal();
        Object value = id < 0 ? null : row.get(ordinals[id], schema.table().fields()[id].dataType());
        throw badValue(i, value, e);
      }
    }
    finishRow();
  }

  /** Hands on what is left. */
  public void flush() {
    if (rowsInChunk > 0) {
      long good = filter == null ? rowsInChunk : filter.apply(chunk);
      if (good > 0) sink.accept(good, chunk.address(), chunk.size());
      chunk.truncate(0);
      rowsInChunk = 0;
    }
  }

  /** Bad rows that were left out so far. */
  public long skipped() {
    return filter == null ? 0 : filter.skipped();
  }

  /** Where each row of the last chunk was among those handed on, -1 if it was left out; null: all were. */
  public int[] places() {
    return filter == null ? null : filter.places();
  }

  /** Frees the memory. Rows that were not flushed are gone. */
  @Override
  public void close() {
    chunk.close();
    if (filter == null) return;
    filter.close();
    if (filter.skipped() > 0) {
      LOG.warn("{} of {} rows of a partition cannot be fed and are left out, the first since: {}",
          filter.skipped(), rows, filter.why());
    }
  }

  /** A column that holds nothing is one that no net can take: the filter leaves its row out. */
  private boolean isLeftEmpty(int column, long at) {
    if (filter == null || column == schema.idOrdinal()) return false;
    chunk.truncate(at);
    chunk.payload(0);
    return true;
  }

  private void finishRow() {
    if (filter != null) filter.rowEnds(chunk.size());
    rows++;
    rowsInChunk++;
    if (chunk.size() >= chunkBytes) flush();
  }

  private UnsafeRow project(InternalRow row) {
    if (projection == null) projection = SparkInternals.unsafeProjection(schema.table());
    return projection.apply(row);
  }

  private static void requireValue(boolean isNull) {
    if (isNull) throw new IllegalArgumentException("is null: fill it, or drop the row");
  }

  private CafetiereException badValue(int column, Object id, IllegalArgumentException cause) {
    String row = id == null ? "row " + rows + " of this partition" : "the row with id " + id;
    return new CafetiereException(CafetiereException.Code.INVALID_ARGUMENT,
        "column '" + schema.table().fieldNames()[column] + "' of " + row + " "
            + cause.getMessage());
  }
}
