// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.lmdb;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.Handle;
import cafetiere.core.NativeLibrary;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * An LMDB database that nobody writes to, read through {@link Source}. What its pages say is checked:
 * a damaged file is an error of the call that meets the damage.
 */
public final class Lmdb extends Handle {
  /**
   * Gives the bytes of a database's file. Called on the thread that opens, splits or moves a cursor;
   * what it throws is what that call throws. It is used until the last cursor is closed.
   */
  public interface Source {
    /** Fills the buffer's remaining bytes with those of the file from {@code offset} on. */
    void read(long offset, ByteBuffer out);
  }

  /**
   * Opens a database.
   *
   * @param name what errors call it, such as its path
   * @param size the file's bytes
   */
  public Lmdb(String name, long size, Source source) {
    super(open(name, size, source), NativeLmdb::close);
  }

  /** The number of records, as the file says. */
  public long records() {
    return call(NativeLmdb::records);
  }

  /** Whether it has ranges of keys; not where they lie in an order of their own. */
  public boolean hasRanges() {
    return call(NativeLmdb::hasRanges);
  }

  /**
   * At most {@code ranges} - 1 keys, in order, that cut the database into ranges of about equal size;
   * fewer where it has fewer records. Reads a fiftieth of a large file at most.
   */
  public List<byte[]> split(int ranges) {
    byte[] encoded = call(lmdb -> NativeLmdb.split(lmdb, ranges));
    ByteBuffer bytes = ByteBuffer.wrap(encoded).order(ByteOrder.LITTLE_ENDIAN);
    List<byte[]> keys = new ArrayList<>();
    while (bytes.hasRemaining()) {
      byte[] key = new byte[bytes.getInt()];
      bytes.get(key);
      keys.add(key);
    }
    return keys;
  }

  /**
   * A cursor before the first record whose key k has from <= k < to, byte by byte without sign; null
   * is no bound. It goes on when the database is closed.
   */
  public Cursor cursor(byte[] from, byte[] to) {
    return new Cursor(call(lmdb -> NativeLmdb.cursorCreate(lmdb, from, to)));
  }

  private static long open(String name, long size, Source source) {
    NativeLibrary.load();
    return NativeLmdb.open(name.getBytes(UTF_8), size, source);
  }

  /** A place among the records. */
  public static final class Cursor extends Handle {
    private final ByteBuffer[] views = new ByteBuffer[2];

    private Cursor(long address) {
      super(address, NativeLmdb::cursorDestroy);
    }

    /**
     * Moves to the next record; false at the end. Without {@code values} only the key is read, and
     * what {@link #value} gives is empty.
     */
    public boolean next(boolean values) {
      return call(cursor -> NativeLmdb.cursorNext(cursor, values, views));
    }

    /** The key: native memory that is there until the cursor moves or is closed. */
    public ByteBuffer key() {
      return views[0];
    }

    /** The value, likewise. */
    public ByteBuffer value() {
      return views[1];
    }
  }
}
