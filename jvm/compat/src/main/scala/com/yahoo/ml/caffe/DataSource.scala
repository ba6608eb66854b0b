// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import java.lang.reflect.InvocationTargetException
import java.util.concurrent.ArrayBlockingQueue

import caffe.Caffe.{CoSDataParameter, LayerParameter, SolverParameter, TransformationParameter}
import com.yahoo.ml.jcaffe.FloatBlob
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SparkSession}

/** Where a net's data layer takes its rows from. A class of one's own is named by the layer's `source_class` and
  * has a constructor of (Config, Int, Boolean).
  *
  * Each task has a copy of the source, with all that is not transient, calls `init`, and has `nextBatch` make
  * batches of the elements of its partition.
  *
  * @tparam T1 an element of the RDD
  * @tparam T2 what holds a batch: a FloatBlob or a MatVector for each top of the layer, as a tuple, an array or
  *   a Seq
  * @param layerId the data layer's place in the net
  * @param isTrain whether the rows are trained on
  * @param STOP_MARK what `sourceQueue` gives when there are no more elements
  */
abstract class DataSource[T1, T2](
    val conf: Config,
    val layerId: Int,
    val isTrain: Boolean,
    val STOP_MARK: T1)
    extends Serializable {
  @transient private[caffe] var solverParameter: SolverParameter = null
  @transient private[caffe] var layerParameter: LayerParameter = null
  @transient private[caffe] var transformationParameter: TransformationParameter = null

  /** The elements to make a batch of. */
  @transient protected var sourceQueue: ArrayBlockingQueue[T1] = null

  /** The layer's `source`. */
  @transient protected var sourceFilePath: String = null
  @transient protected var batchSize_ : Int = -1
  @transient protected var solverMode: Int = -1

  /** The elements, each of which is used once an epoch; null for no data. */
  def makeRDD(sc: SparkContext): RDD[T1]

  /** Reads the layer's settings, on the driver and in each task.
    *
    * @return false if they are not as they should be
    */
  def init(): Boolean = {
    solverParameter = conf.solverParameter
    solverMode = solverParameter.getSolverMode.getNumber
    layerParameter = conf.netParam.getLayer(layerId)
    transformationParameter = layerParameter.getTransformParam
    true
  }

  /** An empty queue, for programs in this package that feed a net themselves. */
  private[caffe] def resetQueue(capacity_limit: Int = 0): Unit = {
    val isLimited = capacity_limit > 0 && capacity_limit <= DataSource.Capacity
    sourceQueue = new ArrayBlockingQueue[T1](if (isLimited) capacity_limit else DataSource.Capacity)
  }

  private[caffe] def takeFrom(queue: ArrayBlockingQueue[T1]): Unit = sourceQueue = queue

  def setBatchSize(size: Int): Unit = batchSize_ = size

  /** Rows of a batch. */
  def batchSize(): Int = batchSize_

  /** Something that holds a batch. */
  def dummyDataHolder(): T2

  /** A blob for each top, of the shape that the net sees. */
  def dummyDataBlobs(): Array[FloatBlob]

  /** Adds an element to the queue; false if it is full. */
  def offer(sample: T1): Boolean = sourceQueue.offer(sample)

  /** Makes a batch of elements of `sourceQueue`.
    *
    * @param sampleIds takes the id of each row; those of rows that the batch has no more stay null
    * @return false if STOP_MARK came; the rows before it are used
    */
  def nextBatch(sampleIds: Array[String], data: T2): Boolean

  /** Whether the layer is of type CoSData. */
  def useCoSDataLayer(): Boolean = false

  /** Tops of a CoSData layer. */
  def getNumTops(): Int = 0

  /** The type of such a top. */
  def getTopDataType(index: Int): CoSDataParameter.DataType = null

  /** How such a top is transformed; null for not at all. */
  def getTopTransformParam(index: Int): TransformationParameter = null

  /** The rows as a table: a column for each top. */
  private[caffe] def table(spark: SparkSession): DataFrame = SourceTable.of(this, spark)
}

object DataSource extends Serializable {
  private[caffe] val Capacity = 1024

  /** The source that the data layer of training or of tests names, after its `init`.
    *
    * @throws IllegalArgumentException if the layer names none, or one that cannot be made; says what to change
    */
  def getSource(conf: Config, isTraining: Boolean): DataSource[_, _] = {
    val phase = if (isTraining) "TRAIN" else "TEST"
    val layerId = if (isTraining) conf.train_data_layer_id else conf.test_data_layer_id
    if (layerId < 0) refuse(s"the net has no data layer for phase $phase: add one with a source_class")
    val layer = conf.netParam.getLayer(layerId)
    if (!layer.hasSourceClass)
      refuse(s"layer '${layer.getName}' has no source_class: set it to the class of its rows, such as" +
        " \"com.yahoo.ml.caffe.LMDB\"")
    val name = layer.getSourceClass
    val source =
      try load(name).getConstructor(classOf[Config], Integer.TYPE, java.lang.Boolean.TYPE)
        .newInstance(conf, Integer.valueOf(layerId), java.lang.Boolean.valueOf(isTraining))
      catch {
        case _: ClassNotFoundException =>
          refuse(s"layer '${layer.getName}': source_class $name is not on the class path; there are" +
            " com.yahoo.ml.caffe.LMDB, SeqImageDataSource, ImageDataFrame and DataFrameSource, and others" +
            " come with --jars")
        case _: NoSuchMethodException =>
          refuse(s"$name has no public constructor of (Config, Int, Boolean)")
        case e: InvocationTargetException => throw e.getCause
      }
    source match {
      case found: DataSource[_, _] =>
        if (!found.init()) refuse(s"layer '${layer.getName}': $name.init() says that its settings are wrong")
        found
      case _ => refuse(s"$name, the source_class of layer '${layer.getName}', is no com.yahoo.ml.caffe.DataSource")
    }
  }

  /** Whether a class below this one has a `nextBatch` of its own. */
  private[caffe] def makesBatches(source: DataSource[_, _], base: Class[_]): Boolean =
    source.getClass.getMethods.exists(method => method.getName == "nextBatch" && !method.isBridge &&
      method.getDeclaringClass != base && base.isAssignableFrom(method.getDeclaringClass))

  private def load(name: String): Class[_] = {
    val context = Thread.currentThread.getContextClassLoader
    Class.forName(name, true, if (context == null) getClass.getClassLoader else context)
  }

  private def refuse(why: String): Nothing = throw new IllegalArgumentException(why)
}
