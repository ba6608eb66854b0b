// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

import com.yahoo.ml.caffe.Config
import org.apache.spark.sql.SparkSession

/** A program for spark-submit that takes CaffeOnSpark's flags. */
abstract class Tool {

  /** Runs the tool on a session of its own, or on the one that is there. */
  def main(args: Array[String]): Unit = {
    val isOwn = SparkSession.getDefaultSession.isEmpty
    val spark = SparkSession.builder().appName(getClass.getSimpleName.stripSuffix("$")).getOrCreate()
    try run(spark, new Config(spark.sparkContext, args))
    finally if (isOwn) spark.stop()
  }

  /** Does what the flags ask for.
    *
    * @throws IllegalArgumentException if a flag is missing
    */
  def run(spark: SparkSession, conf: Config): Unit

  /** The value of a flag that the tool cannot do without. */
  protected def needed(flag: String, value: String): String =
    if (value != null && value.nonEmpty) value
    else throw new IllegalArgumentException(s"-$flag is missing")
}
