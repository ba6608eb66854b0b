// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.net;

import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * A blob or parameter of a net: float32 values in row-major order and a gradient for each, in the
 * engine's own memory. What Java writes there the net reads, and the other way round. The memory stays
 * for as long as Java reaches a buffer of it, also when the net is closed. A blob that is given a larger
 * shape may move: ask the net for it again.
 */
public final class Blob {
  private static final Cleaner CLEANER = Cleaner.create();

  private final long[] shape;
  private final ByteBuffer data;
  private final ByteBuffer diff;

  /** Takes over what NativeNet.blob() gives. */
  Blob(Object[] parts) {
    shape = (long[]) parts[0];
    data = (ByteBuffer) parts[1];
    diff = (ByteBuffer) parts[2];
    long[] memory = (long[]) parts[3];
    // Every view of a buffer refers to the buffer itself, on which the memory hangs therefore.
    releaseAfter(data, memory[0]);
    releaseAfter(diff, memory[1]);
  }

  private static void releaseAfter(ByteBuffer buffer, long memory) {
    CLEANER.register(buffer, () -> NativeNet.release(memory));
  }

  /** The size of each axis. */
  public long[] shape() {
    return shape.clone();
  }

  /** The number of values. */
  public int count() {
    return data.capacity() / Float.BYTES;
  }

  /** The values: direct, in the machine's byte order. */
  public ByteBuffer data() {
    return data.duplicate().order(ByteOrder.nativeOrder());
  }

  /** Their gradients, likewise. */
  public ByteBuffer diff() {
    return diff.duplicate().order(ByteOrder.nativeOrder());
  }
}
