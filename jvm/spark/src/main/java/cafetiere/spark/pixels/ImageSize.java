// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.pixels;

import java.io.Serializable;

/** The size of an image as options give it; what is 0 is found from the number of its values. */
record ImageSize(int channels, int height, int width) implements Serializable {
  private static final int COLOURS = 3;

  /** For an image of so many values: as given, else a square of one channel or of three. */
  ImageSize of(int values) {
    if ((long) channels * height * width == values) return this;
    boolean isOpen = height == 0 && width == 0;
    for (int planes : new int[] {1, COLOURS}) {
      int side = (int) Math.round(Math.sqrt((double) values / planes));
      boolean fits = planes * side * side == values && (channels == 0 || channels == planes);
      if (isOpen && fits) return new ImageSize(planes, side, side);
    }
    if (isOpen && channels == 0) {
      throw new IllegalArgumentException("an image has " + values + " values, which make no square of"
          + " one channel or of three: give the options channels, height and width");
    }
    throw new IllegalArgumentException("an image has " + values + " values, and the options say "
        + channels + " x " + height + " x " + width + ": give its channels, height and width by these options");
  }
}
