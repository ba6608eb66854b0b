// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

import java.nio.FloatBuffer;

/** The values of a {@link FloatBlob}, in its memory. */
public class FloatArray extends BaseObject {
  private final FloatBuffer values;

  FloatArray(FloatBuffer values) {
    this.values = values;
  }

  /** A value; 0 where the index is negative. */
  public float get(int index) {
    return index < 0 ? 0 : values.get(checked(index));
  }

  /** Replaces a value. */
  public void set(int index, float data) {
    values.put(checked(index), data);
  }

  @Override
  protected void deallocate(long address) {}

  private int checked(int index) {
    if (index < 0 || index >= values.capacity()) {
      throw new IndexOutOfBoundsException(
          "index " + index + " of an array of " + values.capacity() + " floats");
    }
    return index;
  }
}
