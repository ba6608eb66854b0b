// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import caffe.Caffe.CoSDataParameter.DataType
import caffe.Caffe.{CoSDataParameter, TransformationParameter}
import com.yahoo.ml.jcaffe.{FloatBlob, Mat, MatVector}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Row, SparkSession}

/** A table for a layer of type CoSData: a column for each top, by its name, and `id` if there is one. */
class DataFrameSource(conf: Config, layerId: Int, isTrain: Boolean)
    extends DataSource[(String, Array[Any]), Array[Any]](conf, layerId, isTrain, ("", Array[Any]())) {
  @transient private var layer: CoSDataParameter = null

  override def init(): Boolean = {
    super.init()
    layer = layerParameter.getCosDataParam
    batchSize_ = layer.getBatchSize
    sourceFilePath = ImageDataSource.located(layer.getSource)
    layerParameter.hasCosDataParam && batchSize_ > 0 && !sourceFilePath.isEmpty
  }

  override def makeRDD(sc: SparkContext): RDD[(String, Array[Any])] = {
    val table = ImageTable.session.read.format(layer.getDataframeFormat).load(sourceFilePath)
    val names = (0 until getNumTops()).map(layer.getTop(_).getName)
    names.find(!table.columns.contains(_)).foreach { missing =>
      throw new IllegalArgumentException(s"$sourceFilePath has no column '$missing', which a top of layer" +
        s" '${layerParameter.getName}' names; it has ${table.columns.mkString(", ")}")
    }
    val hasId = table.columns.contains(SourceTable.Id)
    table.rdd.map { row =>
      val id = if (hasId) String.valueOf(row.getAs[Any](SourceTable.Id)) else ""
      (id, names.map(name => row.getAs[Any](name)).toArray)
    }
  }

  override def useCoSDataLayer(): Boolean = true

  override def getNumTops(): Int = layer.getTopCount

  override def getTopDataType(index: Int): DataType = layer.getTop(index).getType

  override def getTopTransformParam(index: Int): TransformationParameter = {
    val top = layer.getTop(index)
    if (top.hasTransformParam) top.getTransformParam else null
  }

  override def dummyDataHolder(): Array[Any] = Array.tabulate[Any](getNumTops()) { i =>
    if (DataFrameSource.images(getTopDataType(i))) new MatVector(batchSize_)
    else blob(i, top => Seq(top.getChannels, top.getHeight, top.getWidth))
  }

  override def dummyDataBlobs(): Array[FloatBlob] = Array.tabulate(getNumTops())(blob(_, top => Seq(
    if (top.getOutChannels > 0) top.getOutChannels else top.getChannels,
    if (top.getOutHeight > 0) top.getOutHeight else top.getHeight,
    if (top.getOutWidth > 0) top.getOutWidth else top.getWidth)))

  private def blob(index: Int, sizes: CoSDataParameter.TopBlob => Seq[Int]): FloatBlob = {
    val top = layer.getTop(index)
    val sample = sizes(top).take(top.getSampleNumAxes)
    val made = new FloatBlob()
    made.reshape((if (top.getTranspose) sample :+ batchSize_ else batchSize_ +: sample).toArray)
    made
  }

  override def nextBatch(sampleIds: Array[String], data: Array[Any]): Boolean = {
    var row = 0
    while (row < batchSize_) {
      val sample = sourceQueue.take()
      if (sample == STOP_MARK) return false
      sampleIds(row) = sample._1
      data.indices.foreach(i => put(i, row, sample._2(i), data(i)))
      row += 1
    }
    true
  }

  private def put(index: Int, row: Int, value: Any, part: Any): Unit = part match {
    case blob: FloatBlob =>
      val values = DataFrameSource.floats(value)
      val count = blob.count() / batchSize_
      val top = layer.getTop(index)
      if (values.size > count) throw new IllegalArgumentException(
        s"column '${top.getName}' has ${values.size} values in a row, and the layer says $count")
      val (first, step) = if (top.getTranspose) (row, batchSize_) else (row * count, 1)
      for (i <- values.indices) blob.cpu_data().set(first + i * step, values(i))
    case mats: MatVector =>
      val top = layer.getTop(index)
      val bytes = value match {
        case image: Row => DataFrameSource.bytes(image)
        case image: Array[Byte] => image
      }
      val isRaw = top.getType == DataType.RAW_IMAGE
      val mat = if (isRaw) new Mat(top.getChannels, top.getHeight, top.getWidth, bytes) else new Mat(bytes)
      if (!isRaw) mat.decode(if (top.getChannels == 1) Mat.CV_LOAD_IMAGE_GRAYSCALE else Mat.CV_LOAD_IMAGE_COLOR)
      if (conf.resize && (mat.height() != top.getHeight || mat.width() != top.getWidth))
        mat.resize(top.getHeight, top.getWidth)
      val old = mats.put(row, mat)
      if (old != null) old.deallocate()
  }

  /** The elements as they are, unless a class makes batches of its own. */
  override private[caffe] def table(spark: SparkSession): DataFrame =
    if (DataSource.makesBatches(this, classOf[DataFrameSource])) super.table(spark)
    else {
      val elements = makeRDD(spark.sparkContext)
      if (elements == null) throw new IllegalStateException(s"${getClass.getName}.makeRDD gives no data")
      val fields = (0 until getNumTops()).map { i =>
        StructField(layer.getTop(i).getName, DataFrameSource.column(getTopDataType(i)))
      }
      val schema = StructType(StructField(SourceTable.Id, StringType) +: fields)
      val tops = (0 until getNumTops()).map(i => (layer.getTop(i).getName, getTopDataType(i)))
      val rows = elements.map { case (id, values) =>
        Row.fromSeq(id +: values.toSeq.zip(tops).map { case (value, (name, of)) =>
          DataFrameSource.fed(value, of).getOrElse(throw DataFrameSource.unfit(name, of, id, value))
        })
      }
      spark.createDataFrame(rows, schema)
    }
}

private[caffe] object DataFrameSource {
  private val Shown = 4
  private val images = Set(DataType.ENCODED_IMAGE, DataType.RAW_IMAGE, DataType.ENCODED_IMAGE_WITH_DIM)

  private def column(of: DataType): org.apache.spark.sql.types.DataType = of match {
    case DataType.STRING => StringType
    case DataType.INT => IntegerType
    case DataType.FLOAT => FloatType
    case DataType.INT_ARRAY => ArrayType(IntegerType)
    case DataType.FLOAT_ARRAY => ArrayType(FloatType)
    case DataType.ENCODED_IMAGE_WITH_DIM => StructType(Seq(
      StructField("image", BinaryType), StructField("height", IntegerType), StructField("width", IntegerType)))
    case _ => BinaryType
  }

  /** A value as the column of this type has it: any number for a number, and a struct of an image by its fields'
    * names; None where that cannot be.
    */
  private def fed(value: Any, of: DataType): Option[Any] = (of, value) match {
    case (_, null) => Some(null)
    case (DataType.STRING, _: String | _: Number) => Some(value.toString)
    case (DataType.INT, number: Number) => whole(number)
    case (DataType.FLOAT, number: Number) => Some(number.floatValue)
    case (DataType.INT_ARRAY, _) => array(value, whole)
    case (DataType.FLOAT_ARRAY, _) => array(value, number => Some(number.floatValue))
    case (DataType.ENCODED_IMAGE_WITH_DIM, image: Row) =>
      Some(Row(bytes(image), image.getAs[Int]("height"), image.getAs[Int]("width")))
    case (DataType.ENCODED_IMAGE | DataType.RAW_IMAGE, _: Array[Byte]) => Some(value)
    case _ => None
  }

  private def whole(number: Number): Option[Any] =
    if (number.doubleValue == number.intValue) Some(number.intValue) else None

  private def array(value: Any, of: Number => Option[Any]): Option[Seq[Any]] = {
    val elements = value match {
      case array: Array[_] => array.toSeq
      case seq: scala.collection.Seq[_] => seq.toSeq
      case _ => Seq(value)
    }
    val found = elements.map {
      case null => Some(null)
      case number: Number => of(number)
      case _ => None
    }
    if (found.forall(_.isDefined) && !value.isInstanceOf[String]) Some(found.map(_.get)) else None
  }

  private def unfit(name: String, of: DataType, id: String, value: Any): IllegalArgumentException = {
    val held = value match {
      case _: Array[Byte] => "bytes"
      case array: Array[_] => s"an array, ${array.take(Shown).mkString(", ")}"
      case seq: scala.collection.Seq[_] => s"an array, ${seq.take(Shown).mkString(", ")}"
      case _: Row => "a struct"
      case text => s"'${text.toString.take(10 * Shown)}', a ${text.getClass.getSimpleName}"
    }
    val row = if (id == null || id.isEmpty) "" else s" of the row with id $id"
    new IllegalArgumentException(s"column '$name'$row holds $held, which is not of the type $of of its top: cast the" +
      s" column to ${column(of).simpleString}, or change the top's type")
  }

  /** CaffeOnSpark's own tables have an array of bytes. */
  private def bytes(image: Row): Array[Byte] = image.getAs[Any]("image") match {
    case null => null
    case array: Array[Byte] => array
    case seq: scala.collection.Seq[_] => seq.map(_.asInstanceOf[Byte]).toArray
  }

  private def floats(value: Any): IndexedSeq[Float] = value match {
    case text: String => IndexedSeq(text.toFloat)
    case number: Number => IndexedSeq(number.floatValue)
    case array: Array[_] => array.toIndexedSeq.map(_.asInstanceOf[Number].floatValue)
    case seq: scala.collection.Seq[_] => seq.toIndexedSeq.map(_.asInstanceOf[Number].floatValue)
  }
}
