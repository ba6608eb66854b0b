// SPDX-License-Identifier: Apache-2.0
package libs

import java.awt.image.BufferedImage

/** An image of unsigned bytes, plane after plane: red, green, blue.
  *
  * @param image the planes, which are copied
  * @throws IllegalArgumentException if there are not 3 * height * width bytes
  */
class ByteImage(image: Array[Byte], height: Int, width: Int) extends java.io.Serializable {
  if (image.length != 3 * height * width)
    throw new IllegalArgumentException(
      s"${image.length} bytes are no image of 3 x $height x $width")
  private val planes = image.clone
  private val area = height * width

  /** A copy of an image. */
  def this(image: BufferedImage) =
    this(ByteImage.planesOf(image), image.getHeight, image.getWidth)

  /** A black image. */
  def this(height: Int, width: Int) = this(new Array[Byte](3 * height * width), height, width)

  def getHeight(): Int = height
  def getWidth(): Int = width

  def getRed(row: Int, col: Int): Byte = planes(row * width + col)
  def getGreen(row: Int, col: Int): Byte = planes(area + row * width + col)
  def getBlue(row: Int, col: Int): Byte = planes(2 * area + row * width + col)

  /** Copies the planes into an array of 3 * height * width bytes. */
  def copyToBuffer(buffer: Array[Byte]): Unit = {
    if (buffer.length != planes.length)
      throw new IllegalArgumentException(s"${planes.length} bytes do not fit ${buffer.length}")
    System.arraycopy(planes, 0, buffer, 0, planes.length)
  }

  /** Writes a part, values 0 to 255 plane after plane, into an array of 3 values a pixel.
    *
    * @param lowerOffsets the first row and column
    * @param upperOffsets the row and column after the last
    */
  def cropInto(buffer: Array[Float], lowerOffsets: Array[Int], upperOffsets: Array[Int]): Unit = {
    val Array(top, left) = lowerOffsets
    val Array(bottom, right) = upperOffsets
    if (top < 0 || top > bottom || bottom > height || left < 0 || left > right || right > width)
      throw new IllegalArgumentException(
        s"rows $top to $bottom, columns $left to $right are not within $height x $width")
    val (rows, columns) = (bottom - top, right - left)
    if (buffer.length != 3 * rows * columns)
      throw new IllegalArgumentException(
        s"3 x $rows x $columns values do not fit an array of ${buffer.length}")
    var next = 0
    for (channel <- 0 until 3; row <- top until bottom) {
      val begin = channel * area + row * width + left
      var i = 0
      while (i < columns) {
        buffer(next + i) = (planes(begin + i) & 0xff).toFloat
        i += 1
      }
      next += columns
    }
  }
}

private object ByteImage {
  def planesOf(image: BufferedImage): Array[Byte] = {
    val (height, width) = (image.getHeight, image.getWidth)
    val pixels = image.getRGB(0, 0, width, height, null, 0, width)
    Array(16, 8, 0).flatMap(shift => pixels.map(pixel => (pixel >> shift).toByte))
  }
}
