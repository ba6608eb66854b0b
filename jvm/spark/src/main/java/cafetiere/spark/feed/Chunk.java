// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import org.apache.spark.unsafe.Platform;

/** Growing native memory that holds encoded rows: for each column a length, then the bytes. */
final class Chunk implements AutoCloseable {
  private static final int LENGTH_BYTES = 4;

  private long address;
  private long capacity;
  private long size;

  Chunk(long capacity) {
    this.address = Platform.allocateMemory(capacity);
    this.capacity = capacity;
  }

  long address() {
    return address;
  }

  long size() {
    return size;
  }

  /** Forgets what lies beyond `newSize`. */
  void truncate(long newSize) {
    size = newSize;
  }

  void uint8(int value) {
    Platform.putByte(null, payload(Byte.BYTES), (byte) value);
  }

  void int32(int value) {
    Platform.putInt(null, payload(Integer.BYTES), value);
  }

  void int64(long value) {
    Platform.putLong(null, payload(Long.BYTES), value);
  }

  void float32(float value) {
    Platform.putFloat(null, payload(Float.BYTES), value);
  }

  void float64(double value) {
    Platform.putDouble(null, payload(Double.BYTES), value);
  }

  /** Copies bytes from an object (or, if it is null, from native memory). */
  void bytes(Object base, long offset, long count) {
    Platform.copyMemory(base, offset, null, payload(count), count);
  }

  void bytes(byte[] values) {
    bytes(values, Platform.BYTE_ARRAY_OFFSET, values.length);
  }

  /** Writes the length of a column and makes room for it; returns where its bytes go. */
  long payload(long bytes) {
    if (bytes > Integer.MAX_VALUE) {
      throw new IllegalArgumentException("holds " + bytes + " bytes, more than a column may have");
    }
    reserve(LENGTH_BYTES + bytes);
    Platform.putInt(null, address + size, (int) bytes);
    long start = address + size + LENGTH_BYTES;
    size += LENGTH_BYTES + bytes;
    return start;
  }

  @Override
  public void close() {
    Platform.freeMemory(address);
    address = 0;
    capacity = 0;
  }

  private void reserve(long bytes) {
    if (size + bytes > capacity) {
      long grown = Math.max(2 * capacity, size + bytes);
      address = Platform.reallocateMemory(address, size, grown);
      capacity = grown;
    }
  }
}
