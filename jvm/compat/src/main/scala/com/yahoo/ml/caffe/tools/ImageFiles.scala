// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

import java.io.{FileNotFoundException, IOException}

import org.apache.hadoop.fs.Path
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.util.SerializableConfiguration

/** Image files below a folder, and lists of them. */
private[tools] object ImageFiles {

  /** The words of each line of a list, of which there are to be `count`; empty lines are left out. */
  def list(spark: SparkSession, path: String, count: Int): RDD[Array[String]] = {
    val sc = spark.sparkContext
    sc.textFile(path, math.max(2, sc.defaultParallelism)).map(_.trim).filter(_.nonEmpty).map { line =>
      val words = line.split("\\s+")
      if (words.length == count) words
      else
        throw new IllegalArgumentException(
          s"'$line' of $path has ${words.length} words, where each line is to have $count")
    }
  }

  /** A function for tasks that gives a file's bytes. */
  def reader(spark: SparkSession, root: String): String => Array[Byte] = {
    val conf = new SerializableConfiguration(spark.sparkContext.hadoopConfiguration)
    name => bytes(new Path(root, name), conf)
  }

  private def bytes(path: Path, conf: SerializableConfiguration): Array[Byte] =
    try {
      val fs = path.getFileSystem(conf.value)
      val size = fs.getFileStatus(path).getLen
      if (size > Int.MaxValue - 8) throw new IOException(s"it has $size bytes")
      val bytes = new Array[Byte](size.toInt)
      val in = fs.open(path)
      try in.readFully(bytes)
      finally in.close()
      bytes
    } catch {
      case _: FileNotFoundException =>
        throw new IOException(s"there is no file $path: correct the list, or the folder -imageRoot")
      case e: IOException => throw new IOException(s"cannot read $path: ${e.getMessage}", e)
    }
}
