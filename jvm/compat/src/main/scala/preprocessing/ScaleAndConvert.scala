// SPDX-License-Identifier: Apache-2.0
package preprocessing

import java.awt.image.BufferedImage

import cafetiere.core.CafetiereException
import cafetiere.core.image.Image
import libs.ByteImage
import org.apache.spark.rdd.RDD

/** Image files as images of one size, in minibatches. Files that are no images are left out, and so is what
  * does not fill the last minibatch of a partition.
  *
  * @param batchsize images of a minibatch
  */
class ScaleAndConvert(batchsize: Int, height: Int, width: Int) extends java.io.Serializable {

  /** The image of a JPEG, PNG or WebP file, resized; none if the bytes are no such file. */
  def convertImage(compressedImg: Array[Byte]): Option[ByteImage] =
    try {
      val image = Image.decode(compressedImg, Image.Color.COLOR).resize(height, width)
      val (pixels, area) = (image.pixels, height * width)
      // The engine has blue first, side by side.
      Some(new ByteImage(
        Array.tabulate(3 * area)(i => pixels(3 * (i % area) + 2 - i / area)), height, width))
    } catch {
      case e: CafetiereException if e.code == CafetiereException.Code.INVALID_ARGUMENT => None
    }

  /** Minibatches of files. */
  def makeMinibatchRDD(data: RDD[(Array[Byte], Int)]): RDD[(Array[ByteImage], Array[Int])] =
    makeMinibatchRDDWithoutCompression(makeRDD(data))

  /** The same of images. */
  def makeMinibatchRDDWithoutCompression(
      data: RDD[(ByteImage, Int)]): RDD[(Array[ByteImage], Array[Int])] = {
    val size = batchsize // the closure takes this alone
    data.mapPartitions(_.grouped(size).filter(_.length == size).map { batch =>
      (batch.map(_._1).toArray, batch.map(_._2).toArray)
    })
  }

  /** Images of files, one by one. */
  def makeRDD(data: RDD[(Array[Byte], Int)]): RDD[(ByteImage, Int)] =
    data.flatMap { case (file, label) => convertImage(file).map(image => (image, label)) }

  /** The same as makeMinibatchRDD. */
  def apply(data: RDD[(Array[Byte], Int)]): RDD[(Array[ByteImage], Array[Int])] =
    makeMinibatchRDD(data)
}

/** The same for single images, plane after plane, red first. */
object ScaleAndConvert {

  /** The planes of an image. */
  def BufferedImageToByteArray(image: BufferedImage): Array[Byte] = planes(new ByteImage(image))

  /** The planes of a JPEG, PNG or WebP file, resized; none if the bytes are no such file. */
  def decompressImageAndResize(compressedImage: Array[Byte], height: Int, width: Int): Option[Array[Byte]] =
    new ScaleAndConvert(1, height, width).convertImage(compressedImage).map(planes)

  private def planes(image: ByteImage): Array[Byte] = {
    val bytes = new Array[Byte](3 * image.getHeight() * image.getWidth())
    image.copyToBuffer(bytes)
    bytes
  }
}
