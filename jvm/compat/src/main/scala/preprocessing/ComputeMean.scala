// SPDX-License-Identifier: Apache-2.0
package preprocessing

import java.io.{BufferedOutputStream, FileOutputStream}

import caffe.Caffe.BlobProto
import libs.{ByteImage, NDArray}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.types.{ArrayType, BinaryType, FloatType}

/** The mean of images, each of three planes of bytes or of any shape. */
object ComputeMean {

  /** @param shape of an image: 3, height, width
    * @param numData how many images there are
    */
  def computeMean(dataRDD: RDD[(ByteImage, Int)], shape: Array[Int], numData: Int): NDArray =
    meanOfBytes(dataRDD.map { case (image, _) => bytes(image, shape) }, shape, numData)

  /** The same of images in minibatches. */
  def computeMeanFromMinibatches(
      minibatchRDD: RDD[(Array[ByteImage], Array[Int])],
      shape: Array[Int],
      numData: Int): NDArray =
    meanOfBytes(
      minibatchRDD.flatMap { case (images, _) => images.map(bytes(_, shape)) }, shape, numData)

  /** The mean of a column of a DataFrame, which holds bytes, taken as 0 to 255, or floats.
    *
    * The sums of bytes are exact. Those of floats are taken in double precision, partition after
    * partition, so the same DataFrame gives the same bits.
    *
    * @param column binary or array<float>
    * @param shape of a row
    * @throws IllegalArgumentException if the column has another type, or there are no rows
    */
  def computeMean(data: DataFrame, column: String, shape: Array[Int]): NDArray = {
    val rows = data.select(column).rdd
    val (sums, count) = data.schema(column).dataType match {
      case BinaryType =>
        sum(rows.map(_.getAs[Array[Byte]](0)), shape)(_.length)((row, i) => (row(i) & 0xff).toDouble)
      case ArrayType(FloatType, _) =>
        sum(rows.map(_.getAs[scala.collection.Seq[Float]](0).toArray), shape)(_.length)(_(_).toDouble)
      case other =>
        throw new IllegalArgumentException(
          s"column $column has type ${other.simpleString}; cast it to binary or array<float>")
    }
    if (count == 0) throw new IllegalArgumentException(s"column $column has no rows")
    NDArray(sums.map(value => (value / count).toFloat), shape)
  }

  /** Writes a mean as Caffe's mean_file, one BlobProto of 1 x channels x height x width.
    *
    * @param filename local
    */
  def writeMeanToBinaryProto(meanImage: NDArray, filename: String): Unit = {
    val Array(channels, height, width) = meanImage.shape
    val blob = BlobProto.newBuilder().setNum(1).setChannels(channels).setHeight(height).setWidth(width)
    meanImage.toFlat().foreach(value => blob.addData(value))
    val out = new BufferedOutputStream(new FileOutputStream(filename))
    try blob.build().writeTo(out)
    finally out.close()
  }

  private def bytes(image: ByteImage, shape: Array[Int]): Array[Byte] = {
    if (!shape.sameElements(Array(3, image.getHeight(), image.getWidth())))
      throw new IllegalArgumentException(
        s"an image of ${image.getHeight()} x ${image.getWidth()} among those of ${shape.mkString(" x ")}")
    val planes = new Array[Byte](shape.product)
    image.copyToBuffer(planes)
    planes
  }

  private def meanOfBytes(images: RDD[Array[Byte]], shape: Array[Int], numData: Int): NDArray = {
    val (sums, _) = sum(images, shape)(_.length)((row, i) => (row(i) & 0xff).toDouble)
    NDArray(sums.map(value => (value / numData).toFloat), shape)
  }

  /** The sums and the number of rows; sums of bytes are whole numbers below 2^53, so they are exact. */
  private def sum[T](rows: RDD[T], shape: Array[Int])(length: T => Int)(
      value: (T, Int) => Double): (Array[Double], Long) = {
    val size = shape.product
    val text = shape.mkString(" x ")
    val parts = rows.mapPartitions { partition =>
      val sums = new Array[Double](size)
      var count = 0L
      for (row <- partition) {
        if (length(row) != size)
          throw new IllegalArgumentException(s"a row of ${length(row)} values is not $text")
        var i = 0
        while (i < size) {
          sums(i) += value(row, i)
          i += 1
        }
        count += 1
      }
      Iterator((sums, count))
    }
    val total = new Array[Double](size)
    var count = 0L
    for ((sums, rows) <- parts.collect()) {
      for (i <- 0 until size) total(i) += sums(i)
      count += rows
    }
    (total, count)
  }
}
