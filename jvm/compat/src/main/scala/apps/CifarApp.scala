// SPDX-License-Identifier: Apache-2.0
package apps

import libs.ProtoLoader
import loaders.CifarLoader
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.types._

/** Trains Caffe's small net on CIFAR-10: `CifarApp [--master=URL] WORKERS [ROUNDS]`.
  *
  * In SPARKNET_HOME lie data/cifar10, with CIFAR's binary files, and models/cifar10, with
  * cifar10_quick_solver.prototxt and cifar10_quick_train_test.prototxt. Weights are averaged every 10
  * iterations and tested every 5 rounds; at the end they are in cifar10_quick.caffemodel there.
  */
object CifarApp {
  val trainBatchSize = 100
  val testBatchSize = 100
  val channels = 3
  val height = 32
  val width = 32

  def main(args: Array[String]): Unit = Averaging.run("Cifar", args) { (spark, home, own, logger) =>
    val workers = own.head.toInt
    logger.log("loading data")
    val loader = new CifarLoader(s"$home/data/cifar10")
    val models = s"$home/models/cifar10"
    val net = Averaging.onRows(
      ProtoLoader.loadNetPrototxt(s"$models/cifar10_quick_train_test.prototxt"),
      trainBatchSize, channels, height, width)
    val model = new Averaging(workers, syncInterval = 10, testInterval = 5, logger).train(
      ProtoLoader.loadSolverPrototxt(s"$models/cifar10_quick_solver.prototxt"),
      net,
      rows(spark, loader.trainImages, loader.trainLabels).repartition(workers),
      rows(spark, loader.testImages, loader.testLabels).repartition(workers),
      own.drop(1).headOption.fold(0)(_.toInt))
    Averaging.save(model, s"$home/cifar10_quick.caffemodel", logger)
  }

  private[apps] val schema: StructType = StructType(Seq(
    StructField("data", ArrayType(FloatType, containsNull = false), nullable = false),
    StructField("label", IntegerType, nullable = false)))

  /** Images and their classes as a DataFrame. */
  private[apps] def rows(
      spark: SparkSession,
      images: Array[Array[Float]],
      labels: Array[Int]): DataFrame = {
    val rows = spark.sparkContext.parallelize(images.zip(labels).toSeq).map { case (image, label) =>
      Row(image, label)
    }
    spark.createDataFrame(rows, schema)
  }
}
