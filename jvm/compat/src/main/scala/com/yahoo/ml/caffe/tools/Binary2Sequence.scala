// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

import java.io.{ByteArrayOutputStream, ObjectOutputStream}

import com.yahoo.ml.caffe.{Config, ImageTable}
import org.apache.hadoop.io.BytesWritable
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SparkSession}

/** Makes a SequenceFile of image files: `-imageRoot` is their folder, `-labelFile` a list with lines of a file's
  * name and its label, `-output` the file to write. A file that cannot be read ends the job with its name.
  */
object Binary2Sequence extends Tool {
  override def run(spark: SparkSession, conf: Config): Unit =
    table(spark, needed("imageRoot", conf.imageRoot), needed("labelFile", conf.labelFile))
      .write.format("sequence").save(needed("output", conf.outputPath))

  /** The rows: `id`, which is the file's name, `label`, a text, and `data`. */
  def table(spark: SparkSession, imageRoot: String, labelFile: String): DataFrame = {
    val read = ImageFiles.reader(spark, imageRoot)
    val rows = ImageFiles.list(spark, labelFile, 2).map(words => (words(0), words(1), read(words(0))))
    spark.createDataFrame(rows).toDF("id", "label", "data")
  }
}

/** The records of such a SequenceFile, for programs that write it themselves.
  *
  * @param conf whose imageRoot and labelFile are read
  */
class Binary2Sequence(@transient sc: SparkContext, conf: Config) extends Serializable {

  /** A file's serialized name and label, and its bytes. */
  def makeRDD(): RDD[(BytesWritable, BytesWritable)] =
    Binary2Sequence.table(ImageTable.session, conf.imageRoot, conf.labelFile).rdd.map { row =>
      val key = new ByteArrayOutputStream
      val out = new ObjectOutputStream(key)
      out.writeObject((row.getString(0), row.getString(1)))
      out.close()
      (new BytesWritable(key.toByteArray), new BytesWritable(row.getAs[Array[Byte]](2)))
    }
}
