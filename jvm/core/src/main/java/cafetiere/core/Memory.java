// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Direct buffers as the engine wants them. */
final class Memory {
  private Memory() {}

  /** The address of the first remaining byte of a direct buffer. */
  static long address(ByteBuffer buffer) {
    if (!buffer.isDirect()) {
      throw new IllegalArgumentException(
          "the buffer lies on the Java heap: use ByteBuffer.allocateDirect");
    }
    return Native.address(buffer) + buffer.position();
  }

  /** A direct buffer in the machine's byte order. */
  static ByteBuffer allocate(long bytes) {
    if (bytes > Integer.MAX_VALUE) {
      throw new IllegalArgumentException(
          "a batch needs " + bytes + " bytes, more than a buffer holds: predict fewer rows"
              + " at a time");
    }
    return ByteBuffer.allocateDirect((int) bytes).order(ByteOrder.nativeOrder());
  }
}
