// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.rounds;

import cafetiere.core.CafetiereException;
import cafetiere.core.CafetiereException.Code;
import cafetiere.core.Rows;
import cafetiere.spark.cluster.InstructionSet;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.feed.RowEncoder;
import cafetiere.spark.internal.SparkInternals;
import java.io.ByteArrayOutputStream;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.Partitioner;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.TaskCompletionListener;
import scala.Tuple2;

/**
 * Moves a table to its shards by two shuffles, to the same rows in the same order as ranks in a group
 * move it to theirs: all rows are ordered by the engine's keys, and the one at position p goes to
 * shard p modulo the number of shards. A partition that is computed again holds the same bytes.
 */
final class RoundsRows {
  /**
   * What the shuffle found: the shards' rows in chunks, their number, how many bad ones were left out,
   * the slowest instruction set.
   */
  record ShardRows(JavaRDD<byte[]> chunks, long rows, long skipped, String instructionSet) {}

  private static final int KEY_BYTES = 24;
  private static final int ENTRY_BYTES = 32;
  private static final int CHUNK_BYTES = 1 << 20;
  private static final int HEAD_BYTES = Integer.BYTES;

  private RoundsRows() {}

  /** Runs two jobs over the table; the shards' rows are moved when they are first asked for. */
  static ShardRows shuffle(FeedSchema schema, Dataset<Row> table, int shards, long seed) {
    JavaPairRDD<byte[], byte[]> keyed = SparkInternals.rows(schema.select(table)).toJavaRDD()
        .mapPartitionsToPair(part -> new KeyedRows(schema, seed, part));
    JavaPairRDD<byte[], byte[]> sorted = keyed.repartitionAndSortWithinPartitions(
        new ByKey(Math.max(1, keyed.getNumPartitions())), new KeyOrder());
    List<Count> counts = sorted.mapPartitions(part -> List.of(Count.of(part).toText()).iterator())
        .collect().stream().map(Count::fromText).toList();
    long[] first = new long[counts.size() + 1];
    for (int i = 0; i < counts.size(); i++) {
      if (!counts.get(i).error().isEmpty()) {
        throw new CafetiereException(Code.INVALID_ARGUMENT, counts.get(i).error());
      }
      first[i + 1] = first[i] + counts.get(i).rows();
    }
    JavaRDD<Tuple2<Long, byte[]>> placed = sorted.filter(RoundsRows::isRow).mapPartitionsWithIndex(
        (part, rows) -> new NumberedRows(first[part], rows), true);
    JavaRDD<byte[]> shuffled = JavaPairRDD.fromJavaRDD(placed)
        .repartitionAndSortWithinPartitions(new ByShard(shards))
        .values().mapPartitions(Chunks::new);
    return new ShardRows(shuffled, first[counts.size()],
        counts.stream().mapToLong(Count::skipped).sum(),
        InstructionSet.lowest(counts.stream().map(Count::instructionSet).toList()));
  }

  /** Appends the rows of a chunk to a native table. */
  static void append(byte[] chunk, Rows to) {
    long bytes = chunk.length - HEAD_BYTES;
    long address = Platform.allocateMemory(bytes);
    try {
      Platform.copyMemory(chunk, Platform.BYTE_ARRAY_OFFSET + HEAD_BYTES, null, address, bytes);
      to.append(ByteBuffer.wrap(chunk).getInt(), address, bytes);
    } finally {
      Platform.freeMemory(address);
    }
  }

  /** What one range of keys holds, or why its rows cannot be encoded. */
  private record Count(long rows, long skipped, String instructionSet, String error) {
    static Count of(Iterator<Tuple2<byte[], byte[]>> part) {
      long rows = 0;
      long skipped = 0;
      while (part.hasNext()) {
        Tuple2<byte[], byte[]> row = part.next();
        if (row._1().length == 0) return new Count(0, 0, "", utf8(row._2()));
        if (isRow(row)) {
          rows++;
        } else {
          skipped += ByteBuffer.wrap(row._2()).getLong();
        }
      }
      return new Count(rows, skipped, InstructionSet.here(), "");
    }

    /** As text, since a user may have chosen any serializer for results. */
    String toText() {
      return rows + "\n" + skipped + "\n" + instructionSet + "\n" + error;
    }

    static Count fromText(String text) {
      String[] fields = text.split("\n", 4);
      return new Count(
          Long.parseLong(fields[0]), Long.parseLong(fields[1]), fields[2], fields[3]);
    }
  }

  /** Or else a note of how many bad rows a partition has, whose key is shorter and comes before. */
  private static boolean isRow(Tuple2<byte[], byte[]> entry) {
    return entry._1().length == KEY_BYTES;
  }

  private static String utf8(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  /**
   * Encodes rows; each comes with its key. A row that cannot be fed gives a key of no bytes, or is left
   * out and counted under a key of one. What it takes is freed when its task ends, if it has not come to the end of its rows.
   */
  static final class KeyedRows implements Iterator<Tuple2<byte[], byte[]>> {
    private final String schema;
    private final long seed;
    private final Iterator<InternalRow> rows;
    private final RowEncoder encoder;
    private final Deque<Tuple2<byte[], byte[]>> ready = new ArrayDeque<>();
    private boolean ended;

    KeyedRows(FeedSchema schema, long seed, Iterator<InternalRow> rows) {
      this.schema = schema.toJson().toString();
      this.seed = seed;
      this.rows = rows;
      this.encoder = new RowEncoder(schema, this::take);
      TaskContext.get().addTaskCompletionListener((TaskCompletionListener) task -> end());
    }

    @Override
    public boolean hasNext() {
      while (ready.isEmpty() && !ended) encode();
      return !ready.isEmpty();
    }

    @Override
    public Tuple2<byte[], byte[]> next() {
      hasNext();
      return ready.removeFirst();
    }

    private void encode() {
      try {
        while (ready.isEmpty() && rows.hasNext()) encoder.add(rows.next());
        if (!ready.isEmpty()) return;
        encoder.flush();
        if (encoder.skipped() > 0) {
          byte[] count = ByteBuffer.allocate(Long.BYTES).putLong(encoder.skipped()).array();
          ready.add(new Tuple2<>(new byte[1], count));
        }
      } catch (CafetiereException e) {
        byte[] message = e.getMessage().getBytes(StandardCharsets.UTF_8);
        ready.add(new Tuple2<>(new byte[0], message));
      }
      end();
    }

    private void end() {
      if (!ended) encoder.close();
      ended = true;
    }

    private void take(long count, long address, long bytes) {
      ByteBuffer keys;
      try (Rows table = new Rows(schema)) {
        table.append(count, address, bytes);
        keys = ByteBuffer.wrap(table.keys(seed)).order(ByteOrder.LITTLE_ENDIAN);
      }
      long at = address;
      for (int entry = 0; entry < count * ENTRY_BYTES; entry += ENTRY_BYTES) {
        byte[] key = Arrays.copyOfRange(keys.array(), entry, entry + KEY_BYTES);
        byte[] row = new byte[(int) keys.getLong(entry + KEY_BYTES)];
        Platform.copyMemory(null, at, row, Platform.BYTE_ARRAY_OFFSET, row.length);
        at += row.length;
        ready.add(new Tuple2<>(key, row));
      }
    }
  }

  /** Numbers the rows of a range. */
  private static final class NumberedRows implements Iterator<Tuple2<Long, byte[]>> {
    private final Iterator<Tuple2<byte[], byte[]>> rows;
    private long position;

    NumberedRows(long first, Iterator<Tuple2<byte[], byte[]>> rows) {
      this.position = first;
      this.rows = rows;
    }

    @Override
    public boolean hasNext() {
      return rows.hasNext();
    }

    @Override
    public Tuple2<Long, byte[]> next() {
      return new Tuple2<>(position++, rows.next()._2());
    }
  }

  /** Joins rows to chunks of about a MiB: their number, then their bytes. */
  private static final class Chunks implements Iterator<byte[]> {
    private final Iterator<byte[]> rows;

    Chunks(Iterator<byte[]> rows) {
      this.rows = rows;
    }

    @Override
    public boolean hasNext() {
      return rows.hasNext();
    }

    @Override
    public byte[] next() {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      bytes.writeBytes(new byte[HEAD_BYTES]);
      int count = 0;
      for (; rows.hasNext() && bytes.size() < CHUNK_BYTES; count++) bytes.writeBytes(rows.next());
      byte[] chunk = bytes.toByteArray();
      ByteBuffer.wrap(chunk).putInt(count);
      return chunk;
    }
  }

  /** Bytes as the engine compares them. */
  private static final class KeyOrder implements Comparator<byte[]>, Serializable {
    private static final long serialVersionUID = 1L;

    @Override
    public int compare(byte[] a, byte[] b) {
      return Arrays.compareUnsigned(a, b);
    }
  }

  /** Equal ranges of keys, in their order. */
  private static final class ByKey extends Partitioner {
    private static final long serialVersionUID = 1L;
    private final int parts;

    ByKey(int parts) {
      this.parts = parts;
    }

    @Override
    public int numPartitions() {
      return parts;
    }

    @Override
    public int getPartition(Object key) {
      byte[] bytes = (byte[]) key;
      if (bytes.length < KEY_BYTES) return 0;
      return (int) (Integer.toUnsignedLong(ByteBuffer.wrap(bytes).getInt()) * parts >>> 32);
    }
  }

  /** Positions in turn. */
  private static final class ByShard extends Partitioner {
    private static final long serialVersionUID = 1L;
    private final int shards;

    ByShard(int shards) {
      this.shards = shards;
    }

    @Override
    public int numPartitions() {
      return shards;
    }

    @Override
    public int getPartition(Object key) {
      return (int) ((Long) key % shards);
    }
  }
}
