// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

import com.yahoo.ml.caffe.{Config, ImageTable}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, Row, SparkSession}

/** Makes a DataFrame of image files: `-imageRoot` is their folder, `-labelFile` a list with lines of a file's
  * name, its label and an id, `-output` where to write and `-outputFormat` how. A file that cannot be read ends
  * the job with its name.
  */
object Binary2DataFrame extends Tool {
  override def run(spark: SparkSession, conf: Config): Unit =
    table(spark, needed("imageRoot", conf.imageRoot), needed("labelFile", conf.labelFile))
      .write.format(conf.outputFormat).save(needed("output", conf.outputPath))

  /** The rows: `SampleID`, a text, `label`, an int, and `data`. */
  def table(spark: SparkSession, imageRoot: String, labelFile: String): DataFrame = {
    val read = ImageFiles.reader(spark, imageRoot)
    val rows = ImageFiles.list(spark, labelFile, 3).map { words =>
      if (!words(1).matches("\\d{1,9}"))
        throw new IllegalArgumentException(
          s"the label of ${words(0)} in $labelFile is '${words(1)}': the number of a class is needed")
      (words(2), words(1).toInt, read(words(0)))
    }
    spark.createDataFrame(rows).toDF("SampleID", "label", "data")
  }
}

/** The rows of such a DataFrame, for programs that make it themselves.
  *
  * @param conf whose imageRoot and labelFile are read
  */
class Binary2DataFrame(@transient sc: SparkContext, conf: Config) extends Serializable {

  /** A file's id, its label, an int, and its bytes. */
  def makeRDD(): RDD[Row] = Binary2DataFrame.table(ImageTable.session, conf.imageRoot, conf.labelFile).rdd
}
