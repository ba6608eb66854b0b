// SPDX-License-Identifier: Apache-2.0
package loaders

import scala.util.Random

/** CIFAR-10 from its binary files, data_batch_1.bin to data_batch_5.bin and test_batch.bin: one byte for
  * the class and 3 x 32 x 32 for the image, plane after plane. All of it is held in memory.
  *
  * @param path the folder with the files; one without a scheme is local
  * @param seed of the order of the training images, which is the same for equal seeds
  * @throws java.io.IOException if a file is missing or empty, or ends within an image; the text names it
  */
class CifarLoader(path: String, seed: Long = 0) {
  val height = 32
  val width = 32
  val channels = 3

  /** Values of an image. */
  val size: Int = channels * height * width

  /** RowFiles of training images. */
  val nBatches = 5

  private val train = {
    val rows = (1 to nBatches).flatMap(i => records(s"data_batch_$i.bin"))
    new Random(seed).shuffle(rows)
  }
  private val test = records("test_batch.bin")

  /** Training images. */
  val nData: Int = train.length

  /** The values of each training image, 0 to 255, in a random order. */
  val trainImages: Array[Array[Float]] = train.map(image).toArray

  /** The class of each training image. */
  val trainLabels: Array[Int] = train.map(_(0) & 0xff).toArray

  /** The values of each test image, in the file's order. */
  val testImages: Array[Array[Float]] = test.map(image).toArray

  /** The class of each test image. */
  val testLabels: Array[Int] = test.map(_(0) & 0xff).toArray

  /** The mean of the training images. */
  val meanImage: Array[Float] = {
    val sums = new Array[Long](size)
    for (row <- train; i <- 0 until size) sums(i) += row(1 + i) & 0xff
    sums.map(sum => (sum.toDouble / nData).toFloat)
  }

  private def records(name: String): Seq[Array[Byte]] = {
    val rows = RowFiles.records(path, name, 0, 1 + size)
    if (rows.isEmpty) throw RowFiles.fault(path, name, "is empty: it must hold CIFAR's images")
    rows
  }

  private def image(row: Array[Byte]): Array[Float] = row.tail.map(byte => (byte & 0xff).toFloat)
}
