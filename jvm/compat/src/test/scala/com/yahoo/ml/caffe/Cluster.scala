// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import org.apache.spark.SparkContext
import org.apache.spark.sql.SparkSession

/** Two executors, and LeNet's prototxts for sources of any class. */
class Cluster(folder: Path) {
  val spark: SparkSession = SparkSession.builder().appName("caffe").master("local-cluster[2,1,1024]")
    .config("spark.executor.extraClassPath", Cluster.classPath)
    .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.sql.shuffle.partitions", "2").getOrCreate()
  val sc: SparkContext = spark.sparkContext

  def path(name: String): Path = folder.resolve(name)

  def uri(name: String): String = path(name).toUri.toString

  /** A solver of so many steps and its net, whose phases have the rows of these data layers. */
  def solver(name: String, steps: Int, train: String, test: String = "", more: String = ""): String = {
    val lenet = text(Paths.get(sys.props("root"), "examples/quickstart/lenet_train_test.prototxt"))
    val own = lenet.indexOf("layer {")
    val rest = lenet.substring(lenet.indexOf("layer {", own + 1))
    val net = path(s"$name.net")
    Files.write(net, s"name: 'bars'\n$train\n$test\n$rest".getBytes(UTF_8))
    val solver = path(s"$name.solver")
    Files.write(solver, s"""net: "$net" base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "inv"
      gamma: 0.0001 power: 0.75 max_iter: $steps random_seed: 7 snapshot_prefix: "$name" $more""".getBytes(UTF_8))
    solver.toString
  }

  /** A layer of type MemoryData. */
  def images(phase: String, sourceClass: String, source: String, more: String = ""): String =
    s"""layer { name: "data" type: "MemoryData" top: "data" top: "label" include { phase: $phase }
      source_class: "$sourceClass" transform_param { scale: 0.00390625 }
      memory_data_param { source: "$source" batch_size: 32 channels: 1 height: 28 width: 28 $more } }"""

  def bytes(name: String): Array[Byte] = Files.readAllBytes(path(name))

  def text(file: Path): String = new String(Files.readAllBytes(file), UTF_8)
}

object Cluster {
  /** What this JVM has beside Spark. */
  private def classPath: String = System.getProperty("java.class.path").split(File.pathSeparator)
    .filterNot(_.contains("/spark-repo/")).filterNot(_.contains("/pyspark/")).mkString(File.pathSeparator)
}
