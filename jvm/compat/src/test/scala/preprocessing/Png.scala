// SPDX-License-Identifier: Apache-2.0
package preprocessing

import java.awt.image.BufferedImage
import java.io.ByteArrayOutputStream
import javax.imageio.ImageIO

/** Images for tests. */
object Png {

  /** One of 8 x 6 pixels of this colour. */
  def of(rgb: Int): Array[Byte] = {
    val drawn = new BufferedImage(8, 6, BufferedImage.TYPE_INT_RGB)
    for (y <- 0 until 6; x <- 0 until 8) drawn.setRGB(x, y, rgb)
    val bytes = new ByteArrayOutputStream
    ImageIO.write(drawn, "png", bytes)
    bytes.toByteArray
  }
}
