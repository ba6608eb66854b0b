// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.image;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Test;

/** Images as nets read them. */
class ImageTest {
  @Test
  void decodesAsBlueGreenRed() throws IOException {
    Image image = Image.decode(png(), Image.Color.COLOR);
    assertEquals(2, image.height());
    assertEquals(3, image.width());
    assertArrayEquals(new byte[] {3, 2, 1}, java.util.Arrays.copyOf(image.pixels(), 3));
    assertEquals(1, Image.decode(png(), Image.Color.GRAY).channels());
    assertEquals(4 * 5 * 3, image.resize(4, 5).pixels().length);
    assertThrows(CafetiereException.class, () -> Image.decode(new byte[9], Image.Color.COLOR));
    assertThrows(CafetiereException.class, () -> image.resize(0, 5));
    assertThrows(CafetiereException.class, () -> new Image(9, 9, 3, new byte[4]).resize(1, 1));
  }

  @Test
  void transformsAsTheLayerDoes() {
    byte[] pixels = new byte[3 * 3];
    for (int i = 0; i < pixels.length; ++i) pixels[i] = (byte) (200 + i);
    Image image = new Image(3, 3, 1, pixels);
    ByteBuffer out = ByteBuffer.allocateDirect(5 * Float.BYTES).order(ByteOrder.nativeOrder());
    try (Transformer test = new Transformer(
        "{\"param\": \"crop_size: 1 scale: 0.5 mean_value: 100\", \"phase\": \"TEST\"}")) {
      test.run(image, 0, out, 4, 1);
      FloatBuffer floats = out.asFloatBuffer();
      assertEquals((204 - 100) * 0.5f, floats.get(4));
      assertThrows(IllegalArgumentException.class, () -> test.run(image, 0, out, 5, 1));
      assertThrows(CafetiereException.class, () -> test.run(image, 0, out, 0, 4));
    }
    try (Transformer train = new Transformer(
        "{\"param\": \"crop_size: 2 mirror: true\", \"phase\": \"TRAIN\", \"seed\": 4}")) {
      java.util.Set<FloatBuffer> seen = new java.util.HashSet<>();
      for (int i = 0; i < 100; ++i) {
        train.run(image, i, out, 0, 4);
        seen.add(FloatBuffer.allocate(5).put(out.asFloatBuffer()).flip());
      }
      assertEquals(8, seen.size()); // four places, mirrored or not
    }
    CafetiereException e =
        assertThrows(CafetiereException.class, () -> new Transformer("{\"param\": \"crop: 1\"}"));
    assertTrue(e.getMessage().contains("no field \"crop\""), e.getMessage());
  }

  private static byte[] png() throws IOException {
    BufferedImage drawn = new BufferedImage(3, 2, BufferedImage.TYPE_INT_RGB);
    drawn.setRGB(0, 0, 0x010203);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    ImageIO.write(drawn, "png", bytes);
    return bytes.toByteArray();
  }
}
