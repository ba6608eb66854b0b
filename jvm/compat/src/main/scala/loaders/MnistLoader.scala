// SPDX-License-Identifier: Apache-2.0
package loaders

import java.nio.ByteBuffer

/** MNIST, or another set of its form, from its four IDX files. All of it is held in memory.
  *
  * @param path the folder with the files; one without a scheme is local
  * @throws java.io.IOException if a file is missing, is no IDX file of bytes or is cut short; the text
  *   names it
  */
class MnistLoader(path: String) {
  val height = 28
  val width = 28

  /** The values of each training image, -0.5 to 0.5. */
  val trainImages: Array[Array[Float]] = images("train-images-idx3-ubyte")

  /** The class of each training image. */
  val trainLabels: Array[Long] = labels("train-labels-idx1-ubyte")

  /** The values of each test image. */
  val testImages: Array[Array[Float]] = images("t10k-images-idx3-ubyte")

  /** The class of each test image. */
  val testLabels: Array[Long] = labels("t10k-labels-idx1-ubyte")

  private def images(name: String): Array[Array[Float]] =
    records(name, Seq(height, width)).map(_.map(byte => (byte & 0xff) / 255f - 0.5f)).toArray

  private def labels(name: String): Array[Long] =
    records(name, Nil).map(row => (row(0) & 0xff).toLong).toArray

  /** The header is 0, 0, 8 for bytes, the number of axes, and their sizes. */
  private def records(name: String, sizes: Seq[Int]): Seq[Array[Byte]] = {
    val axes = 1 + sizes.length
    val header = ByteBuffer.wrap(RowFiles.head(path, name, 4 + 4 * axes))
    val magic = header.getInt()
    val count = header.getInt()
    val found = Seq.fill(sizes.length)(header.getInt())
    if (magic != 0x800 + axes || found != sizes)
      throw RowFiles.fault(path, name, s"is no IDX file of bytes with rows of ${(1 +: sizes).mkString(" x ")}")
    val rows = RowFiles.records(path, name, 4 + 4 * axes, sizes.product)
    if (rows.length != count)
      throw RowFiles.fault(path, name, s"says that it has $count rows, and has ${rows.length}")
    rows
  }
}
