// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

import java.util.Arrays;
import java.util.Objects;

/** The images of a batch. */
public class MatVector extends BaseObject {
  private final Mat[] mats;

  /** Places for so many images. */
  public MatVector(int size) {
    super(1);
    if (size < 0) {
      throw new IllegalArgumentException("a vector of " + size + " images");
    }
    mats = new Mat[size];
  }

  /** Puts an image at a place and gives the one that was there, or null. */
  public Mat put(int pos, Mat mat) {
    if (pos < 0 || pos >= mats.length) {
      throw new IndexOutOfBoundsException("place " + pos + " of " + mats.length + " images");
    }
    Mat before = mats[pos];
    mats[pos] = Objects.requireNonNull(mat, "no image is put");
    return before;
  }

  /** An image's columns; -1 where there is none. */
  public int width(int pos) {
    return isEmpty(pos) ? -1 : mats[pos].width();
  }

  /** Its rows; -1 where there is none. */
  public int height(int pos) {
    return isEmpty(pos) ? -1 : mats[pos].height();
  }

  /** Its channels; -1 where there is none. */
  public int channels(int pos) {
    return isEmpty(pos) ? -1 : mats[pos].channels();
  }

  /** A copy of its bytes; null where there is none. */
  public byte[] data(int pos) {
    return isEmpty(pos) ? null : mats[pos].data();
  }

  int size() {
    return mats.length;
  }

  Mat get(int pos) {
    return mats[pos];
  }

  @Override
  protected void deallocate(long address) {
    Arrays.fill(mats, null);
  }

  private boolean isEmpty(int pos) {
    return pos < 0 || pos >= mats.length || mats[pos] == null;
  }
}
