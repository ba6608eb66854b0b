// SPDX-License-Identifier: Apache-2.0
package apps

import caffe.Caffe.NetParameter
import libs.{CaffeNet, DefaultPreprocessor, ProtoLoader}
import loaders.CifarLoader
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.DataFrame

/** Computes blob ip1 of CIFAR-10's training images: `FeaturizerApp [--master=URL] WORKERS [WEIGHTS]`.
  *
  * SPARKNET_HOME as for CifarApp; WEIGHTS is a .caffemodel that lies there on every executor. Without it
  * the weights are the fillers'. The features are in features.parquet there.
  */
object FeaturizerApp {
  val batchSize = 100

  def main(args: Array[String]): Unit =
    Averaging.run("Featurizer", args) { (spark, home, own, logger) =>
      logger.log("loading data")
      val loader = new CifarLoader(s"$home/data/cifar10")
      val net = inputs(ProtoLoader.loadNetPrototxt(
        s"$home/models/cifar10/cifar10_quick_train_test.prototxt"))
      val images = CifarApp.rows(spark, loader.trainImages, loader.trainLabels)
        .repartition(own.head.toInt)
      val features = featurize(images, net, own.drop(1).headOption, "ip1")
      import spark.implicits._
      val file = s"$home/features.parquet"
      features.toDF("label", "ip1").write.parquet(file)
      logger.log(s"featurized ${spark.read.parquet(file).count()} images")
    }

  /** Each row's label, and its part of a blob. */
  private[apps] def featurize(
      rows: DataFrame,
      netParam: NetParameter,
      weights: Option[String],
      blob: String): RDD[(Int, Array[Float])] = {
    val (schema, text) = (rows.schema, netParam.toByteArray)
    rows.rdd.mapPartitions { it =>
      val net =
        CaffeNet(NetParameter.parseFrom(text), schema, new DefaultPreprocessor(schema))
      weights.foreach(net.copyTrainedLayersFrom)
      it.grouped(batchSize).flatMap { batch =>
        val features = net.forward(batch.iterator, List(blob))(blob)
        batch.zipWithIndex.map { case (row, i) =>
          (row.getAs[Int]("label"), features.slice(0, i).toFlat())
        }
      }
    }
  }

  private def inputs(net: NetParameter): NetParameter = {
    val rest = Averaging.onRows(net, batchSize, 3, 32, 32)
    val builder = rest.toBuilder.clearLayer
    builder.addLayer(libs.RDDLayer("data", List(batchSize.toLong, 3L, 32L, 32L), None))
    builder.addLayer(libs.RDDLayer("label", List(batchSize.toLong, 1L), None))
    for (i <- 1 until rest.getLayerCount) builder.addLayer(rest.getLayer(i))
    builder.build
  }
}
