// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.image;

import static java.nio.charset.StandardCharsets.US_ASCII;

import cafetiere.core.NativeLibrary;
import java.util.Locale;

/**
 * An image of 8 bits a channel, rows from the top.
 *
 * @param pixels the channels of a pixel side by side: gray; or blue, green and red; or these and alpha
 */
public record Image(int height, int width, int channels, byte[] pixels) {
  /** Which channels a decoded image has. */
  public enum Color {
    /** Those of the file. */
    STORED,
    /** Blue, green and red. */
    COLOR,
    GRAY
  }

  /** Decodes a JPEG, PNG or WebP file. */
  public static Image decode(byte[] file, Color color) {
    NativeLibrary.load();
    int[] sizes = new int[3];
    byte[] name = color.name().toLowerCase(Locale.ROOT).getBytes(US_ASCII);
    byte[] pixels = NativeImage.decode(file, name, sizes);
    return new Image(sizes[0], sizes[1], sizes[2], pixels);
  }

  /** The image in another size, with the bytes of OpenCV's bilinear resize. */
  public Image resize(int toHeight, int toWidth) {
    NativeLibrary.load();
    return new Image(toHeight, toWidth, channels,
        NativeImage.resize(pixels, height, width, channels, toHeight, toWidth));
  }
}
