// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

import cafetiere.core.net.Blob;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Floats in native memory, with a shape. */
public class FloatBlob extends BaseObject {
  private static final long MOST = Integer.MAX_VALUE / Float.BYTES;

  private int[] shape = {0};
  private int count;
  private ByteBuffer memory = ByteBuffer.allocateDirect(0);

  /** A blob without values, to be reshaped. */
  public FloatBlob() {
    super(1);
  }

  /**
   * Not available: there is no library of CaffeOnSpark whose addresses it could take.
   *
   * @throws UnsupportedOperationException always
   */
  public FloatBlob(long nativeAddress, boolean shouldDeallocate) {
    super(0);
    throw new UnsupportedOperationException("a FloatBlob cannot be made of an address of CaffeOnSpark's"
        + " library: make it with new FloatBlob(), give it a shape with reshape and values with set_cpu_data");
  }

  /** A view of a net's blob, whose memory stays as long as this does. */
  FloatBlob(Blob blob) {
    this();
    long[] sizes = blob.shape();
    shape = new int[sizes.length];
    for (int i = 0; i < sizes.length; ++i) {
      shape[i] = Math.toIntExact(sizes[i]);
    }
    memory = blob.data();
    count = blob.count();
  }

  /** Gives it another shape; false, and no change, where a size is below 1. */
  public boolean reshape(int num, int channels, int height, int width) {
    return reshape(new int[] {num, channels, height, width});
  }

  /** The same for any number of axes. New memory is zero, and larger than before where needed. */
  public boolean reshape(int[] sizes) {
    if (sizes == null) {
      return false;
    }
    long values = 1;
    for (int size : sizes) {
      if (size < 1) {
        return false;
      }
      values *= size;
      if (values > MOST) {
        throw new IllegalArgumentException("a blob of more than " + MOST + " floats");
      }
    }
    if (values * Float.BYTES > memory.capacity()) {
      memory = ByteBuffer.allocateDirect((int) values * Float.BYTES);
    }
    shape = sizes.clone();
    count = (int) values;
    return true;
  }

  /** Takes shape and values of another blob; false where that is null. */
  public boolean copyFrom(FloatBlob source) {
    if (source == null || (source.count > 0 && !reshape(source.shape))) {
      return false;
    }
    data().put(0, source.data(), 0, source.data().capacity());
    return true;
  }

  /** The values: a view, also where the blob is given another shape of at most the same size. */
  public FloatArray cpu_data() {
    return new FloatArray(data().asFloatBuffer());
  }

  /** The same as {@link #cpu_data}: this engine computes on processors. */
  public FloatArray gpu_data() {
    return cpu_data();
  }

  /**
   * Copies values, which may be fewer than the blob has; false where they are null.
   *
   * @throws IllegalArgumentException if they are more
   */
  public boolean set_cpu_data(float[] data) {
    if (data == null) {
      return false;
    }
    if (data.length > count) {
      throw new IllegalArgumentException(
          data.length + " floats do not fit a blob of " + count + ": reshape it first");
    }
    data().asFloatBuffer().put(data);
    return true;
  }

  /** The number of values. */
  public int count() {
    return count;
  }

  /** A copy of the shape. */
  int[] shape() {
    return shape.clone();
  }

  /** The values' memory and no more, in the machine's byte order. */
  ByteBuffer data() {
    return memory.slice(0, count * Float.BYTES).order(ByteOrder.nativeOrder());
  }

  /** Leaves the memory to those who still see it. */
  @Override
  protected void deallocate(long address) {
    memory = ByteBuffer.allocateDirect(0);
    shape = new int[] {0};
    count = 0;
  }
}
