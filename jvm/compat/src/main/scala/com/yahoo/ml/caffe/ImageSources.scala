// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import cafetiere.spark.sequence.SequenceImages
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.types.{BinaryType, BooleanType, IntegerType, StringType}
import org.apache.spark.sql.{Column, DataFrame, SparkSession, functions}

/** A Caffe database of `Datum` records, on any of Hadoop's file systems; tasks read parts of it where it lies. */
class LMDB(conf: Config, layerId: Int, isTrain: Boolean) extends ImageDataSource(conf, layerId, isTrain) {
  override def makeRDD(sc: SparkContext): RDD[(String, String, Int, Int, Int, Boolean, Array[Byte])] = {
    val partitions = if (conf.lmdb_partitions > 0) conf.lmdb_partitions.toString else ""
    val records = ImageTable.session.read.format("lmdb")
      .option("layout", "hwc").option("partitions", partitions).load(sourceFilePath)
    ImageTable.elements(records, isEncoded = false)
  }
}

/** A SequenceFile of images, whose keys are (id, label) or (id, label, channels, height, width, encoded). */
class SeqImageDataSource(conf: Config, layerId: Int, isTrain: Boolean)
    extends ImageDataSource(conf, layerId, isTrain) {
  override def makeRDD(sc: SparkContext): RDD[(String, String, Int, Int, Int, Boolean, Array[Byte])] = {
    val least = math.max(conf.clusterSize, sc.defaultMinPartitions)
    ImageTable.elements(SequenceImages.read(ImageTable.session, sourceFilePath, least), isEncoded = true)
  }
}

/** A table with columns `label` and `data`, a string or bytes; and `id`, `channels`, `height`, `width` and
  * `encoded`, if it has them.
  */
class ImageDataFrame(conf: Config, layerId: Int, isTrain: Boolean)
    extends ImageDataSource(conf, layerId, isTrain) {
  override def makeRDD(sc: SparkContext): RDD[(String, String, Int, Int, Int, Boolean, Array[Byte])] = {
    val layer = memdatalayer_param
    val all = ImageTable.session.read.format(layer.getDataframeFormat).load(sourceFilePath)
    val select = (0 until layer.getDataframeColumnSelectCount).map(layer.getDataframeColumnSelect)
    val table = if (select.isEmpty) all else all.selectExpr(select: _*)
    Seq("label", "data").find(!table.columns.contains(_)).foreach { missing =>
      throw new IllegalArgumentException(s"$sourceFilePath has no column '$missing'; it has" +
        s" ${table.columns.mkString(", ")}: name it by dataframe_column_select")
    }
    ImageTable.elements(table, layer.getImageEncoded)
  }
}

private[caffe] object ImageTable {
  def session: SparkSession = SparkSession.builder().getOrCreate()

  /** A table's images, whose label or data may be null; `isEncoded`: whether they are files where no column says so. */
  def elements(
      table: DataFrame,
      isEncoded: Boolean): RDD[(String, String, Int, Int, Int, Boolean, Array[Byte])] = {
    def column(name: String, otherwise: Any): Column =
      if (table.columns.contains(name)) functions.coalesce(table.col(name), functions.lit(otherwise))
      else functions.lit(otherwise)
    val images = table.select(
      column("id", "").cast(StringType), table.col("label").cast(StringType),
      column("channels", 0).cast(IntegerType), column("height", 0).cast(IntegerType),
      column("width", 0).cast(IntegerType), column("encoded", isEncoded).cast(BooleanType),
      table.col("data").cast(BinaryType))
    images.rdd.map { row =>
      (row.getString(0), row.getString(1), row.getInt(2), row.getInt(3), row.getInt(4), row.getBoolean(5),
        row.getAs[Array[Byte]](6))
    }
  }
}
