// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

import java.nio.ByteBuffer;

/** A table of rows in native memory, filled from chunks of encoded rows. */
public final class Rows extends Handle {
  /**
   * How much native memory the rows of tables may take together; what goes beyond lies in mapped
   * files that end with the process. Any thread. It may be closed while tables use it.
   */
  public static final class Budget extends Handle {
    /** `options` is the JSON that cft_row_budget_create describes. */
    public Budget(String options) {
      super(create(options), Native::rowBudgetDestroy);
    }

    private static long create(String options) {
      NativeLibrary.load();
      return Native.rowBudgetCreate(Native.utf8(options));
    }
  }

  /** Tells which encoded rows a net can take. One thread at a time. */
  public static final class Check extends Handle {
    /** `options` is the JSON that cft_row_check_create describes. */
    public Check(String options) {
      super(create(options), Native::rowCheckDestroy);
    }

    /**
     * Looks at `count` rows that lie encoded in native memory, as for {@link Rows#append}: good[i]
     * becomes 1 if the net can take row i, else 0. Says what is wrong with the first that it cannot
     * take, "" if it takes all.
     */
    public String run(long count, long address, long bytes, byte[] good) {
      return Native.text(call(check -> Native.rowCheckRun(check, count, address, bytes, good)));
    }

    private static long create(String options) {
      NativeLibrary.load();
      return Native.rowCheckCreate(Native.utf8(options));
    }
  }

  /** Makes an empty table; `schema` is the JSON that cft_rows_create describes. */
  public Rows(String schema) {
    super(create(schema, 0), Native::rowsDestroy);
  }

  /** The same under a budget, which includes the shards that the rows go to. */
  public Rows(String schema, Budget budget) {
    super(budget.call(address -> create(schema, address)), Native::rowsDestroy);
  }

  /**
   * Appends `count` rows from native memory: each row is its columns in schema order, each column a
   * little-endian uint32 number of bytes and then the bytes.
   */
  public void append(long count, long address, long bytes) {
    run(rows -> Native.rowsAppend(rows, count, address, bytes));
  }

  /** Appends `count` rows, encoded as above, from the remaining bytes of a direct buffer. */
  public void append(long count, ByteBuffer chunk) {
    append(count, address(chunk), chunk.remaining());
  }

  /** The number of rows in the table. */
  public long count() {
    return call(Native::rowsCount);
  }

  /** The keys that rows are shuffled by, with the rows' sizes: 32 bytes each, as cft_rows_keys says. */
  public byte[] keys(long seed) {
    return call(rows -> Native.rowsKeys(rows, seed, Native.rowsCount(rows)));
  }

  private static long create(String schema, long budget) {
    NativeLibrary.load();
    return Native.rowsCreate(Native.utf8(schema), budget);
  }

  /** The address of the first remaining byte of a direct buffer. */
  private static long address(ByteBuffer buffer) {
    if (!buffer.isDirect()) {
      throw new IllegalArgumentException(
          "the buffer lies on the Java heap: use ByteBuffer.allocateDirect");
    }
    return Native.address(buffer) + buffer.position();
  }
}
