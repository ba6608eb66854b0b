// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

import com.yahoo.ml.caffe.{Config, ImageDataSource}
import org.apache.spark.sql.functions.{coalesce, col, concat, lit, raise_error}
import org.apache.spark.sql.types.{BinaryType, StringType}
import org.apache.spark.sql.{DataFrame, SparkSession}

/** Makes a DataFrame of a Caffe LMDB: `-imageRoot` is its folder, `-lmdb_partitions` how many tasks read it,
  * `-output` where to write and `-outputFormat` how.
  */
object LMDB2DataFrame extends Tool {
  override def run(spark: SparkSession, conf: Config): Unit =
    table(spark, needed("imageRoot", conf.imageRoot), conf.lmdb_partitions)
      .write.format(conf.outputFormat).save(needed("output", conf.outputPath))

  /** The rows: `id`, the key, `label`, a text, `channels`, `height`, `width`, `encoded`, and `data`, whose pixels
    * lie pixel by pixel.
    *
    * @param partitions 0 for as many as the database's size asks for
    */
  def table(spark: SparkSession, lmdb: String, partitions: Int): DataFrame = {
    val reader = spark.read.format("lmdb").option("layout", "hwc")
    val wanted = if (partitions > 0) reader.option("partitions", partitions.toLong) else reader
    val none = raise_error(concat(
      lit(s"a record of $lmdb holds numbers and no image; its key is "), col("id"))).cast(BinaryType)
    wanted.load(ImageDataSource.located(lmdb)).select(
      col("id"), col("label").cast(StringType).as("label"), col("channels"), col("height"),
      col("width"), col("encoded"), coalesce(col("data"), none).as("data"))
  }
}
