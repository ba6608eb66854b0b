// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import caffe.Caffe.TransformationParameter;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Floats and images that Java owns. */
class BlobsAndImagesTest {
  @TempDir
  Path folder;

  @Test
  void blobsKeepWhatIsPutIntoThem() {
    FloatBlob blob = new FloatBlob();
    assertEquals(0, blob.count());
    assertThrows(UnsupportedOperationException.class, () -> new FloatBlob(-1, false));
    assertFalse(blob.reshape(1, 0, 2, 2) || blob.reshape(new int[] {-1}) || blob.reshape(null));
    assertTrue(blob.reshape(1, 2, 2, 1));
    assertEquals(4, blob.count());
    assertFalse(blob.set_cpu_data(null));
    assertTrue(blob.set_cpu_data(new float[] {1, 2, 3, 4}));
    assertThrows(IllegalArgumentException.class, () -> blob.set_cpu_data(new float[5]));
    FloatArray values = blob.gpu_data();
    values.set(3, 9);
    assertEquals(9, blob.cpu_data().get(3));
    assertEquals(0, values.get(-1));
    assertThrows(IndexOutOfBoundsException.class, () -> values.get(4));
    assertThrows(IndexOutOfBoundsException.class, () -> values.set(-1, 0));
    FloatBlob copy = new FloatBlob();
    assertFalse(copy.copyFrom(null));
    assertTrue(copy.copyFrom(blob));
    blob.deallocate();
    assertEquals(9, copy.cpu_data().get(3));
    assertEquals(9, values.get(3));
  }

  @Test
  void matsAreDecodedAndResized() throws IOException {
    Mat mat = new Mat(png(6, 4));
    mat.decode(Mat.CV_LOAD_IMAGE_COLOR);
    assertEquals("4 6 3", mat.height() + " " + mat.width() + " " + mat.channels());
    assertEquals(3, mat.data()[0]); // blue first
    mat.resize(2, 3);
    assertEquals(2 * 3 * 3, mat.data().length);
    assertThrows(RuntimeException.class, () -> mat.resize(0, 3));
    Mat gray = new Mat(png(6, 4));
    gray.decode(Mat.CV_LOAD_IMAGE_GRAYSCALE);
    assertEquals(1, gray.channels());
    assertThrows(RuntimeException.class, () -> new Mat(new byte[8]).decode(1));
    assertThrows(IllegalArgumentException.class, () -> new Mat(3, 2, 2, new byte[4]));
    assertArrayEquals(new byte[] {1, 2}, new Mat(1, 1, 2, new byte[] {1, 2}).data());
  }

  @Test
  void vectorsGiveBackWhatTheyHad() {
    MatVector mats = new MatVector(2);
    Mat first = new Mat(1, 2, 3, new byte[6]);
    assertNull(mats.put(0, first));
    assertEquals("2 3 1", mats.height(0) + " " + mats.width(0) + " " + mats.channels(0));
    assertEquals(-1, mats.height(1) + mats.width(2) - mats.channels(-1));
    assertNull(mats.data(1));
    first.deallocate();
    assertEquals(6, mats.data(0).length);
    assertSame(first, mats.put(0, new Mat(new byte[1])));
    assertThrows(IndexOutOfBoundsException.class, () -> mats.put(2, first));
    assertThrows(NullPointerException.class, () -> mats.put(0, null));
    assertEquals(1, mats.data(0).length);
  }

  @Test
  void imagesBecomeTheRowsOfABlob() throws IOException {
    MatVector mats = new MatVector(2);
    for (int i = 0; i < 2; ++i) {
      mats.put(i, new Mat(3, 2, 2, new byte[] {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}));
    }
    TransformationParameter param = TransformationParameter.newBuilder()
        .setCropSize(1).addMeanValue(1).addMeanValue(1).addMeanValue(1).setScale(2).build();
    FloatDataTransformer transformer = new FloatDataTransformer(param, false);
    FloatBlob blob = new FloatBlob();
    blob.reshape(2, 3, 1, 1);
    transformer.transform(mats, blob);
    for (int i = 0; i < 6; ++i) {
      assertEquals(2 * (i % 3), blob.cpu_data().get(i));
    }
    blob.reshape(2, 3, 2, 2);
    assertThrows(RuntimeException.class, () -> transformer.transform(mats, blob));
    assertThrows(Exception.class, () -> transformer.transform(blob, blob));
    assertThrows(NullPointerException.class, () -> new FloatDataTransformer(null, true));
    transformer.deallocate();
    assertThrows(IllegalStateException.class, () -> transformer.transform(mats, blob));
  }

  @Test
  void theSimulatorRunsOverAFolder() throws IOException {
    Path images = Files.createDirectories(folder.resolve("data/images"));
    Files.write(images.resolve("a.png"), png(40, 30));
    Files.writeString(images.resolve("labels.txt"), "a.png 1\n");
    assertEquals(4 * 3 * 227 * 227, new Simulator(folder.toString(), 2).run().count());
    assertThrows(IOException.class, () -> Utils.GetNetParam(images.resolve("labels.txt").toString()));
  }

  private static byte[] png(int width, int height) throws IOException {
    BufferedImage drawn = new BufferedImage(width, height, BufferedImage.TYPE_INT_RGB);
    drawn.setRGB(0, 0, 0x010203);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    ImageIO.write(drawn, "png", bytes);
    return bytes.toByteArray();
  }
}
