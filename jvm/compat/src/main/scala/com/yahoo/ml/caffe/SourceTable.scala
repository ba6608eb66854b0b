// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import com.yahoo.ml.jcaffe.{FloatBlob, MatVector}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Row, SparkSession}

/** The rows that a source's `nextBatch` makes, as a table. */
private[caffe] object SourceTable {
  val Id = "id"
  private val image = StructType(Seq(
    StructField("origin", StringType),
    StructField("height", IntegerType),
    StructField("width", IntegerType),
    StructField("nChannels", IntegerType),
    StructField("mode", IntegerType),
    StructField("data", BinaryType)))

  /** A column `id`, and one for each top: an image of a MatVector, a number or an array of a FloatBlob. */
  def of[T1, T2](source: DataSource[T1, T2], spark: SparkSession): DataFrame = {
    val elements = source.makeRDD(spark.sparkContext)
    if (elements == null) throw new IllegalStateException(s"${source.getClass.getName}.makeRDD gives no data")
    val names = columns(source)
    val kinds = parts(source.dummyDataHolder(), source)
    if (kinds.size != names.size)
      throw new IllegalStateException(s"${source.getClass.getName}.dummyDataHolder has ${kinds.size} parts," +
        s" and its layer feeds ${names.size} tops: ${names.mkString(", ")}")
    val fields = names.zip(kinds).map {
      case (name, _: MatVector) => StructField(name, image)
      case (name, blob: FloatBlob) if blob.count() == source.batchSize() => StructField(name, FloatType)
      case (name, _) => StructField(name, ArrayType(FloatType, containsNull = false))
    }
    val rows = elements.mapPartitions(partition => new Batches(source, partition).flatten)
    spark.createDataFrame(rows, StructType(StructField(Id, StringType) +: fields))
  }

  /** The column that feeds each top: that of its name. */
  private def columns(source: DataSource[_, _]): Seq[String] = {
    val layer = source.conf.netParam.getLayer(source.layerId)
    val tops = layer.getCosDataParam
    if (layer.getType == "CoSData") (0 until tops.getTopCount).map(tops.getTop(_).getName)
    else (0 until layer.getTopCount).map(layer.getTop)
  }

  /** What a holder has for each top. */
  def parts(holder: Any, source: DataSource[_, _]): Seq[Any] = {
    val all = holder match {
      case one @ (_: FloatBlob | _: MatVector) => Seq(one)
      case array: Array[_] => array.toSeq
      case seq: scala.collection.Seq[_] => seq.toSeq
      case product: Product => product.productIterator.toSeq
      case other => Seq(other)
    }
    all.foreach {
      case _: FloatBlob | _: MatVector =>
      case other =>
        val found = if (other == null) "null" else other.getClass.getName
        throw new IllegalStateException(s"${source.getClass.getName}.dummyDataHolder has a $found: for each top" +
          " of the layer it must have a FloatBlob or a MatVector")
    }
    all
  }

  /** A row of a part, as the column has it. */
  def value(part: Any, row: Int, batch: Int, isTransposed: Boolean): Any = part match {
    case mats: MatVector =>
      val data = mats.data(row)
      if (data == null) throw new IllegalStateException(s"nextBatch put no Mat at $row, where it gave an id")
      Row("", mats.height(row), mats.width(row), mats.channels(row), 0, data)
    case blob: FloatBlob =>
      val floats = blob.cpu_data()
      val count = blob.count() / batch
      val (first, step) = if (isTransposed) (row, batch) else (row * count, 1)
      if (count == 1) floats.get(row) else Array.tabulate(count)(i => floats.get(first + i * step))
  }
}
