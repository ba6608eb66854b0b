// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.submit;

import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import javax.imageio.ImageIO;

/** Raw pixels as a file of them. */
final class PixelFile {
  private static final int COLOURS = 3;

  private PixelFile() {}

  /**
   * A PNG of bytes that lie pixel by pixel: grey, or blue, green, red. Where they are null, or are not as
   * many as the sizes say, they stay as they are, for the engine to judge.
   */
  static byte[] of(byte[] pixels, Integer channels, Integer height, Integer width) {
    boolean isWhole = pixels != null && channels != null && height != null && width != null
        && (channels == 1 || channels == COLOURS) && height > 0 && width > 0
        && (long) channels * height * width == pixels.length;
    if (!isWhole) return pixels;
    int type = channels == 1 ? BufferedImage.TYPE_BYTE_GRAY : BufferedImage.TYPE_INT_RGB;
    BufferedImage image = new BufferedImage(width, height, type);
    if (channels == 1) {
      image.getRaster().setDataElements(0, 0, width, height, pixels);
    } else {
      int[] colours = new int[height * width];
      for (int i = 0, at = 0; i < colours.length; i++, at += COLOURS) {
        colours[i] = (pixels[at + 2] & 0xff) << 16 | (pixels[at + 1] & 0xff) << 8 | pixels[at] & 0xff;
      }
      image.getRaster().setDataElements(0, 0, width, height, colours);
    }
    ByteArrayOutputStream file = new ByteArrayOutputStream();
    try {
      ImageIO.write(image, "png", file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return file.toByteArray();
  }
}
