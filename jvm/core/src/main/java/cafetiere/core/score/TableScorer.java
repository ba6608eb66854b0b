// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.score;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.Handle;
import cafetiere.core.NativeLibrary;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Scores rows of a table as they are, texts, dates and gaps among them, in any JVM, without Spark: with the
 * net of a model of {@code cafetiere.spark.ml}, whose first layer encodes them.
 *
 * <pre>{@code
 * Map<String, CellType> columns = Map.of("age", CellType.DOUBLE, "city", CellType.TEXT);
 * try (TableScorer visitors = new TableScorer(net, weights, columns, "probability")) {
 *   float[] probabilities = visitors.score(Map.of("age", 31, "city", "Oslo"));
 * }
 * }</pre>
 *
 * <p>One thread at a time: {@link #share} gives each further thread a scorer of its own, with the same
 * weights in memory.
 */
public final class TableScorer extends Handle {
  private final Map<String, CellType> columns;
  private final List<String> names;
  private final CellType[] types;
  private final int size;
  private ByteBuffer row = buffer(256);

  /**
   * A scorer of a row at a time.
   *
   * @param net text of the prototxt, as the model's {@code caffeModel().getNet()} has it
   * @param weights a caffemodel
   * @param columns all that were learned from, with the types that they had in training
   * @param output the blob that is the score; "" if the net ends in one alone
   */
  public TableScorer(String net, byte[] weights, Map<String, CellType> columns, String output) {
    this(create(net, weights, columns, output), new LinkedHashMap<>(columns));
  }

  private TableScorer(long address, Map<String, CellType> columns) {
    super(address, NativeScorer::destroy);
    this.columns = columns;
    this.names = List.copyOf(columns.keySet());
    this.types = columns.values().toArray(new CellType[0]);
    try {
      size = Scorer.requireOneOutput(address);
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  /** A further scorer, for another thread, which shares this one's weights; either may be closed first. */
  public TableScorer share() {
    return call(scorer -> new TableScorer(NativeScorer.share(scorer), columns));
  }

  /** The columns and their types. */
  public Map<String, CellType> columns() {
    return Map.copyOf(columns);
  }

  /** Floats of a row's score. */
  public int size() {
    return size;
  }

  /** The score of a row, given as cells by column; null, or no entry, is a gap. */
  public float[] score(Map<String, ?> cells) {
    List<Object> inOrder = new ArrayList<>();
    columns.keySet().forEach(name -> inOrder.add(cells.get(name)));
    return score(inOrder);
  }

  /** The same, given in the order of the columns. */
  public float[] score(List<?> cells) {
    float[] score = new float[size];
    score(cells, score);
    return score;
  }

  /**
   * The same, written to {@code score}, which has space for {@link #size} floats. It allocates nothing,
   * except for texts with other characters than ASCII.
   */
  public void score(List<?> cells, float[] score) {
    encode(cells);
    try {
      NativeScorer.scoreEncoded(handle(), row, row.position(), score);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  private void encode(List<?> cells) {
    if (cells.size() != columns.size()) {
      throw new IllegalArgumentException(
          "a row of " + cells.size() + " cells for " + columns.size() + " columns");
    }
    row.clear();
    for (int i = 0; i < types.length; i++) {
      Object cell = cells.get(i);
      ensure(types[i].room(cell));
      try {
        types[i].put(cell, row);
      } catch (ClassCastException e) {
        throw new IllegalArgumentException("column '" + names.get(i) + "' is of type " + types[i]
            + ", and the cell is a " + cell.getClass().getName(), e);
      } catch (ArithmeticException | NumberFormatException e) {
        throw new IllegalArgumentException("column '" + names.get(i) + "' is of type " + types[i]
            + ", which does not hold " + cell + ", a " + cell.getClass().getName(), e);
      }
    }
  }

  private void ensure(int bytes) {
    if (row.remaining() >= bytes) return;
    ByteBuffer larger = buffer(2 * (row.position() + bytes));
    row.flip();
    row = larger.put(row);
  }

  private static ByteBuffer buffer(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static long create(
      String net, byte[] weights, Map<String, CellType> columns, String output) {
    if (columns.isEmpty()) throw new IllegalArgumentException("a table has a column at least");
    NativeLibrary.load();
    byte[][] typed = columns.entrySet().stream()
        .flatMap(column -> Stream.of(column.getKey().getBytes(UTF_8),
            column.getValue().engineName().getBytes(UTF_8),
            column.getValue().name().getBytes(UTF_8)))
        .toArray(byte[][]::new);
    return NativeScorer.create(
        net.getBytes(UTF_8), weights, output.getBytes(UTF_8), 1, new byte[0][], typed);
  }
}
