// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.leveldb;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.Handle;
import cafetiere.core.NativeLibrary;
import java.nio.ByteBuffer;
import java.nio.file.Path;

/** A LevelDB on a local disk that nobody else has open, and a place among its records. */
public final class LevelDb extends Handle {
  private final ByteBuffer[] views = new ByteBuffer[2];

  /** Opens the folder, in which LevelDB writes a little; before its first record. */
  public LevelDb(Path folder) {
    super(open(folder), NativeLevelDb::close);
  }

  /** Moves to the next record, in the order of the keys; false at the end. */
  public boolean next() {
    return call(leveldb -> NativeLevelDb.next(leveldb, views));
  }

  /** The key: native memory that is there until the next move. */
  public ByteBuffer key() {
    return views[0];
  }

  /** The value, likewise. */
  public ByteBuffer value() {
    return views[1];
  }

  private static long open(Path folder) {
    NativeLibrary.load();
    return NativeLevelDb.open(folder.toString().getBytes(UTF_8));
  }
}
