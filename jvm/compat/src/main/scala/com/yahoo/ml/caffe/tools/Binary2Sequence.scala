// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

import com.yahoo.ml.caffe.Config
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
