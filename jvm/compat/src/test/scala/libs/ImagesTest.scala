// SPDX-License-Identifier: Apache-2.0
package libs

import java.awt.image.BufferedImage

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class ImagesTest {
  // 2 x 3: red 0 to 5, green 100 to 105, blue 200 to 205.
  private val planes = Array.tabulate(18)(i => (i / 6 * 100 + i % 6).toByte)

  @Test def planesOfAnImage(): Unit = {
    val picture = new BufferedImage(3, 2, BufferedImage.TYPE_INT_RGB)
    for (row <- 0 until 2; col <- 0 until 3) {
      val i = row * 3 + col
      picture.setRGB(col, row, (i << 16) | ((100 + i) << 8) | (200 + i))
    }
    val image = new ByteImage(picture)
    val copy = new Array[Byte](18)
    image.copyToBuffer(copy)
    assertArrayEquals(planes, copy)
    assertEquals((2, 3), (image.getHeight(), image.getWidth()))
    assertEquals((5, 105, 205), (image.getRed(1, 2), image.getGreen(1, 2), image.getBlue(1, 2) & 0xff))
    assertEquals(0, new ByteImage(2, 3).getGreen(1, 1))
  }

  @Test def aCropKeepsRowsAndColumnsApart(): Unit = {
    val part = new Array[Float](3 * 1 * 2)
    new ByteImage(planes, 2, 3).cropInto(part, Array(1, 1), Array(2, 3))
    assertArrayEquals(Array(4f, 5f, 104f, 105f, 204f, 205f), part)
    val outside = assertThrows(
      classOf[IllegalArgumentException],
      () => new ByteImage(planes, 2, 3).cropInto(part, Array(1, 1), Array(3, 2)))
    assertEquals("rows 1 to 3, columns 1 to 2 are not within 2 x 3", outside.getMessage)
  }

  @Test def aWindowOfMinibatchesInAnyOrderOfCalls(): Unit =
    for (sampled <- Seq(1, 5, 10, 100); labelsFirst <- Seq(true, false)) {
      val batches = Iterator.tabulate(100)(i => (Array(new ByteImage(Array.fill(3)(i.toByte), 1, 1)), Array(i)))
      val sampler = new MinibatchSampler(batches, 100, sampled)
      assertEquals((sampler.startIdx until sampler.startIdx + sampled).toList, sampler.indices.toList)
      for (i <- 0 until sampled) {
        def image = sampler.nextImageMinibatch()(0).getRed(0, 0).toInt
        def label = sampler.nextLabelMinibatch()(0)
        val (first, second) = if (labelsFirst) { val l = label; (l, image) } else { val p = image; (p, label) }
        assertEquals(sampler.startIdx + i, first)
        assertEquals(first, second)
      }
      assertThrows(classOf[NoSuchElementException], () => { sampler.nextLabelMinibatch(); () })
    }
}
