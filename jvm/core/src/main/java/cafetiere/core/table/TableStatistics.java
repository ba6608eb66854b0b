// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.table;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.Handle;
import cafetiere.core.NativeLibrary;

/**
 * What must be known of a table's columns to train a net on them: means, deviations, values. Parts of a
 * table count on their own and are merged without rounding, in any order. One thread at a time.
 */
public final class TableStatistics extends Handle {
  /** Counts nothing yet; {@code options} is the JSON that cft_table_create describes. */
  public TableStatistics(String options) {
    super(create(options), NativeTable::destroy);
  }

  /** Counts rows that lie encoded in native memory, as for Rows.append; after an error it is unfit. */
  public void add(long count, long address, long bytes) {
    run(table -> NativeTable.add(table, count, address, bytes));
  }

  /** Adds what {@link #bytes} gave for another part of the table. */
  public void merge(byte[] part) {
    run(table -> NativeTable.merge(table, part));
  }

  /** The statistics: the same bytes for the same rows, in whatever parts and order they came. */
  public byte[] bytes() {
    return call(NativeTable::statistics);
  }

  /** The text of a net that learns one column; {@code options} is the JSON of cft_table_net. */
  public String net(String options) {
    return new String(call(table -> NativeTable.net(table, options.getBytes(UTF_8))), UTF_8);
  }

  private static long create(String options) {
    NativeLibrary.load();
    return NativeTable.create(options.getBytes(UTF_8));
  }
}
