// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import java.nio.file.Paths

import scala.util.{Failure, Success, Try}

import caffe.Caffe.MemoryDataParameter
import com.yahoo.ml.jcaffe.{FloatBlob, Mat, MatVector}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.slf4j.{Logger, LoggerFactory}

/** Images with a label, for a layer of type MemoryData. An element of its RDD has id, label, channels, height,
  * width, whether it is an image file, and the bytes of the file or the pixels, pixel by pixel; sizes that are not
  * known are 0.
  *
  * A class of one's own makes such an RDD. The engine decodes, resizes and transforms the images.
  */
abstract class ImageDataSource(conf: Config, layerId: Int, isTrain: Boolean)
    extends DataSource[(String, String, Int, Int, Int, Boolean, Array[Byte]), (MatVector, FloatBlob)](
      conf,
      layerId,
      isTrain,
      (null, null, 0, 0, 0, false, null)) {
  @transient protected var log: Logger = null
  @transient protected var memdatalayer_param: MemoryDataParameter = null

  override def init(): Boolean = {
    log = LoggerFactory.getLogger(getClass)
    if (!super.init()) return false
    val fault =
      if (!layerParameter.hasMemoryDataParam) Some("has no memory_data_param")
      else if (layerParameter.getMemoryDataParam.getBatchSize < 1) Some("needs a batch_size of at least 1")
      else if (layerParameter.getMemoryDataParam.getSource.isEmpty) Some("names no source")
      else None
    fault match {
      case Some(what) =>
        log.error(s"layer '${layerParameter.getName}' $what")
        false
      case None =>
        memdatalayer_param = layerParameter.getMemoryDataParam
        batchSize_ = memdatalayer_param.getBatchSize
        sourceFilePath = ImageDataSource.located(memdatalayer_param.getSource)
        true
    }
  }

  override def dummyDataHolder(): (MatVector, FloatBlob) = (new MatVector(batchSize_), blob(1, 1, 1))

  override def dummyDataBlobs(): Array[FloatBlob] = {
    val layer = memdatalayer_param
    Array(blob(layer.getChannels, layer.getHeight, layer.getWidth), blob(1, 1, 1))
  }

  private def blob(channels: Int, height: Int, width: Int): FloatBlob = {
    val made = new FloatBlob()
    made.reshape(batchSize_, channels, height, width)
    made
  }

  /** Makes a batch of decoded images; those that cannot be decoded or are not of the size that they say are
    * left out.
    */
  override def nextBatch(sampleIds: Array[String], data: (MatVector, FloatBlob)): Boolean = {
    val labels = data._2.cpu_data()
    var row = 0
    while (row < batchSize_) {
      val sample = sourceQueue.take()
      if (sample == STOP_MARK) return false
      decoded(sample) match {
        case Failure(e) => log.warn(s"image ${sample._1} is left out: ${e.getMessage}")
        case Success(mat) =>
          val old = data._1.put(row, mat)
          if (old != null) old.deallocate()
          sampleIds(row) = sample._1
          labels.set(row, ImageDataSource.label(sample._1, sample._2))
          row += 1
      }
    }
    true
  }

  private def decoded(sample: (String, String, Int, Int, Int, Boolean, Array[Byte])): Try[Mat] = Try {
    val (_, _, channels, height, width, encoded, bytes) = sample
    val layer = memdatalayer_param
    def known(size: Int, ofLayer: Int) = if (size > 0) size else ofLayer
    val mat =
      if (encoded) new Mat(bytes)
      else new Mat(known(channels, layer.getChannels), known(height, layer.getHeight),
        known(width, layer.getWidth), bytes)
    if (encoded) mat.decode(layer.getChannels match {
      case 1 => Mat.CV_LOAD_IMAGE_GRAYSCALE
      case 3 => Mat.CV_LOAD_IMAGE_COLOR
      case _ => Mat.CV_LOAD_IMAGE_UNCHANGED
    })
    val isSized = height > 0 && width > 0
    require(!isSized || (mat.height() == height && mat.width() == width),
      s"it is ${mat.height()} x ${mat.width()} and not $height x $width")
    if (conf.resize && (mat.height() != layer.getHeight || mat.width() != layer.getWidth))
      mat.resize(layer.getHeight, layer.getWidth)
    mat
  }

  /** The elements themselves, as ImageDataFrame has them, unless a class makes batches of its own. */
  override private[caffe] def table(spark: SparkSession): DataFrame =
    if (DataSource.makesBatches(this, classOf[ImageDataSource])) super.table(spark) else elements(spark)

  private def elements(spark: SparkSession): DataFrame = {
    val rdd = makeRDD(spark.sparkContext)
    if (rdd == null) throw new IllegalStateException(s"${getClass.getName}.makeRDD gives no data")
    val layer = memdatalayer_param
    val (ofLayer, heightOfLayer, widthOfLayer) = (layer.getChannels, layer.getHeight, layer.getWidth)
    val isResized = conf.resize
    val rows = rdd.map { case (id, label, channels, height, width, encoded, data) =>
      def known(size: Int, otherwise: Int) = if (size > 0 || encoded) size else otherwise
      val (planes, lines, columns) =
        (known(channels, ofLayer), known(height, heightOfLayer), known(width, widthOfLayer))
      val number = if (label == null) None else Some(ImageDataSource.label(id, label))
      val isOther = lines != heightOfLayer || columns != widthOfLayer
      if (isResized && !encoded && isOther && data != null) {
        val resized = ImageDataSource.resized(id, planes, lines, columns, data, heightOfLayer, widthOfLayer)
        (id, number, planes, heightOfLayer, widthOfLayer, encoded, resized)
      } else (id, number, planes, lines, columns, encoded, data)
    }
    spark.createDataFrame(rows).toDF("id", "label", "channels", "height", "width", "encoded", "data")
  }
}

private[caffe] object ImageDataSource {

  /** The label of an image as a number. */
  def label(id: String, text: String): Float = {
    def of = if (id == null || id.isEmpty) "" else s" of the row with id $id"
    if (text == null) throw new IllegalArgumentException(s"column 'label'$of is null: fill it, or drop the row")
    try text.toFloat
    catch {
      case _: NumberFormatException => throw new IllegalArgumentException(
        s"column 'label'$of is '$text', and labels are numbers: correct it, or drop the row")
    }
  }

  /** The pixels of a raw image in another size. */
  private def resized(
      id: String, channels: Int, height: Int, width: Int, data: Array[Byte], toHeight: Int,
      toWidth: Int): Array[Byte] = {
    if (channels.toLong * height * width != data.length) throw new IllegalArgumentException(
      s"column 'data' of the row with id $id has ${data.length} bytes, and its image is $channels x $height x" +
        s" $width: correct one of them, or drop the row")
    val mat = new Mat(channels, height, width, data)
    try {
      mat.resize(toHeight, toWidth)
      mat.data()
    } finally mat.deallocate()
  }

  /** `file:some/folder` is one of the folder that the program runs in. */
  def located(path: String): String = {
    val isRelative = path.startsWith("file:") && !path.startsWith("file:/")
    if (isRelative) s"file:${Paths.get(path.stripPrefix("file:")).toAbsolutePath}" else path
  }
}
