// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.lmdb;

import java.nio.ByteBuffer;

/** The JNI functions of libcafetiere.so for LMDB, in the manner of {@code cafetiere.core.Native}. */
final class NativeLmdb {
  private NativeLmdb() {}

  static native long open(byte[] name, long size, Lmdb.Source source);

  static native long records(long lmdb);

  static native boolean hasRanges(long lmdb);

  static native byte[] split(long lmdb, int ranges);

  static native void close(long lmdb);

  static native long cursorCreate(long lmdb, byte[] from, byte[] to);

  /** Fills {@code views} with key and value; false at the end. */
  static native boolean cursorNext(long cursor, boolean values, ByteBuffer[] views);

  static native void cursorDestroy(long cursor);

  static native long create(byte[] path);

  static native long createLevelDb(byte[] path);

  static native void put(long writer, byte[] key, byte[] value);

  static native void commit(long writer);

  static native void writerClose(long writer);
}
