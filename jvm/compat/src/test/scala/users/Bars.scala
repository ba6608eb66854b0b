// SPDX-License-Identifier: Apache-2.0
package users

import com.yahoo.ml.caffe.{Config, DataSource, ImageDataSource}
import com.yahoo.ml.jcaffe.{FloatBlob, Mat, MatVector}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.util.LongAccumulator

/** Images of a bright bar on noise, whose place tells the label. */
object Bars {
  val Side = 28
  val Classes = 10

  def pixels(id: Int): Array[Byte] = {
    val bytes = new Array[Byte](Side * Side)
    new java.util.Random(id).nextBytes(bytes)
    for (i <- bytes.indices) bytes(i) = ((bytes(i) & 0xff) / 4).toByte
    val top = 2 + 2 * (id % Classes)
    for (y <- top until top + 3; x <- 4 until Side - 4) bytes(y * Side + x) = 230.toByte
    bytes
  }
}

/** A source as a user writes one: its elements are numbers, of which it draws the images in the executors. */
class DrawnBars(conf: Config, layerId: Int, isTrain: Boolean)
    extends DataSource[Int, (MatVector, FloatBlob)](conf, layerId, isTrain, -1) {
  private var first = 0
  private var names = Map[Int, String]()
  private var drawn: LongAccumulator = _

  override def init(): Boolean = {
    val isWell = super.init()
    val layer = conf.netParam.getLayer(layerId).getMemoryDataParam
    batchSize_ = layer.getBatchSize
    sourceFilePath = layer.getSource
    isWell && !sourceFilePath.isEmpty
  }

  override def makeRDD(sc: SparkContext): RDD[Int] = {
    val last = sourceFilePath.toInt
    names = (first until last).map(id => id -> f"bar $id%05d").toMap
    drawn = sc.longAccumulator("drawn")
    DrawnBars.drawn = drawn
    sc.parallelize(first until last, 3)
  }

  override def dummyDataHolder(): (MatVector, FloatBlob) = (new MatVector(batchSize()), labels())

  override def dummyDataBlobs(): Array[FloatBlob] = {
    val data = new FloatBlob()
    data.reshape(batchSize(), 1, Bars.Side, Bars.Side)
    Array(data, labels())
  }

  private def labels(): FloatBlob = {
    val blob = new FloatBlob()
    blob.reshape(batchSize(), 1, 1, 1)
    blob
  }

  override def nextBatch(sampleIds: Array[String], data: (MatVector, FloatBlob)): Boolean = {
    val (images, labels) = data
    for (i <- 0 until batchSize()) {
      val number = sourceQueue.take()
      if (number == STOP_MARK) return false
      val old = images.put(i, new Mat(1, Bars.Side, Bars.Side, Bars.pixels(number)))
      if (old != null) old.deallocate()
      labels.cpu_data().set(i, (number % Bars.Classes).toFloat)
      sampleIds(i) = names(number)
      drawn.add(1)
    }
    true
  }
}

object DrawnBars {
  /** Counts on the driver. */
  var drawn: LongAccumulator = _
}

/** One that makes images of its own, and leaves the batches to CaffeOnSpark. */
class ListedBars(conf: Config, layerId: Int, isTrain: Boolean) extends ImageDataSource(conf, layerId, isTrain) {
  override def makeRDD(sc: SparkContext): RDD[(String, String, Int, Int, Int, Boolean, Array[Byte])] =
    sc.parallelize(0 until sourceFilePath.toInt, 2).map { id =>
      (f"bar $id%05d", (id % Bars.Classes).toString, 1, Bars.Side, Bars.Side, false, Bars.pixels(id))
    }
}

/** A class that is no source. */
class NoSource(conf: Config, layerId: Int, isTrain: Boolean)

/** A source without the constructor that is asked for. */
class Unmade(conf: Config) extends ListedBars(conf, 0, true)

/** A source that loses rows. */
class Impatient(conf: Config, layerId: Int, isTrain: Boolean) extends DrawnBars(conf, layerId, isTrain) {
  override def nextBatch(sampleIds: Array[String], data: (MatVector, FloatBlob)): Boolean = {
    super.nextBatch(sampleIds, data)
    false
  }
}
