// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.image;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.Handle;
import cafetiere.core.NativeLibrary;
import java.nio.ByteBuffer;

/** What a data layer does to images: cut, mirror, subtract a mean, scale. */
public final class Transformer extends Handle {
  /** Makes a transformer; {@code options} is the JSON that cft_transformer_create describes. */
  public Transformer(String options) {
    super(create(options), NativeImage::transformerDestroy);
  }

  /**
   * Writes an image as floats, plane after plane, into a direct buffer of the machine's byte order.
   *
   * @param number of the image, which decides with the seed where it is cut and whether it is mirrored
   * @param offset floats of the buffer before the image
   * @param count floats of the image, just as many as the options and its shape make
   */
  public void run(Image image, long number, ByteBuffer out, int offset, int count) {
    if (!out.isDirect() || offset < 0 || count < 0
        || (long) offset + count > out.capacity() / Float.BYTES) {
      throw new IllegalArgumentException("the buffer has no " + count + " floats from float "
          + offset + " on, or is not direct: it has " + out.capacity() + " bytes");
    }
    run(transformer -> NativeImage.transformerRun(transformer, image.pixels(), image.height(),
        image.width(), image.channels(), number, out, offset, count));
  }

  private static long create(String options) {
    NativeLibrary.load();
    return NativeImage.transformerCreate(options.getBytes(UTF_8));
  }
}
