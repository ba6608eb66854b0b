// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

import com.yahoo.ml.caffe.Config
import org.apache.spark.sql.SparkSession

/** Makes a SequenceFile of a Caffe LMDB: `-imageRoot` is its folder, `-lmdb_partitions` how many tasks read it,
  * `-output` the file to write.
  */
object LMDB2Sequence extends Tool {
  override def run(spark: SparkSession, conf: Config): Unit =
    LMDB2DataFrame.table(spark, needed("imageRoot", conf.imageRoot), conf.lmdb_partitions)
      .write.format("sequence").save(needed("output", conf.outputPath))
}
