// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.leveldb;

import java.nio.ByteBuffer;

/** The JNI functions of libcafetiere.so for LevelDB. */
final class NativeLevelDb {
  private NativeLevelDb() {}

  static native long open(byte[] path);

  /** Fills {@code views} with key and value; false at the end. */
  static native boolean next(long leveldb, ByteBuffer[] views);

  static native void close(long leveldb);
}
