// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

import cafetiere.core.image.Image;

/** The bytes of an image, or of a file that {@link #decode} makes one. */
public class Mat extends BaseObject {
  /** What the file has. */
  public static final int CV_LOAD_IMAGE_UNCHANGED = -1;
  /** One channel. */
  public static final int CV_LOAD_IMAGE_GRAYSCALE = 0;
  /** Blue, green and red. */
  public static final int CV_LOAD_IMAGE_COLOR = 1;
  /** One channel of any depth; here of 8 bits. */
  public static final int CV_LOAD_IMAGE_ANYDEPTH = 2;
  /** Gray or colour, as the file has it. */
  public static final int CV_LOAD_IMAGE_ANYCOLOR = 4;

  private Image image;

  /** Bytes of a file. */
  public Mat(byte[] data) {
    this(1, 1, data.length, data);
  }

  /** An image whose channels lie side by side. */
  public Mat(int channels, int height, int width, byte[] data) {
    super(1);
    if (channels < 1 || height < 1 || width < 1 || data.length != (long) channels * height * width) {
      throw new IllegalArgumentException(
          data.length + " bytes are no image of " + channels + " x " + height + " x " + width);
    }
    image = new Image(height, width, channels, data.clone());
  }

  /** Decodes the file that the bytes are, in place. */
  public synchronized void decode(int flags) {
    image = Image.decode(image.pixels(), color(flags));
  }

  /** Resizes the image in place, bilinearly. */
  public synchronized void resize(int height, int width) {
    image = image.resize(height, width);
  }

  /** Rows. */
  public int height() {
    return image.height();
  }

  /** Columns. */
  public int width() {
    return image.width();
  }

  /** Channels. */
  public int channels() {
    return image.channels();
  }

  /** A copy of the bytes. */
  public byte[] data() {
    return image.pixels().clone();
  }

  Image image() {
    return image;
  }

  /** Leaves the bytes to the garbage collector, as a {@link MatVector} may still have them. */
  @Override
  protected void deallocate(long address) {}

  private static Image.Color color(int flags) {
    if (flags < 0 || (flags & CV_LOAD_IMAGE_ANYCOLOR) != 0) {
      return Image.Color.STORED;
    }
    return (flags & CV_LOAD_IMAGE_COLOR) != 0 ? Image.Color.COLOR : Image.Color.GRAY;
  }
}
