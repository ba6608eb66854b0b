// SPDX-License-Identifier: Apache-2.0
package apps

import caffe.Caffe.{NetParameter, TransformationParameter}
import cafetiere.spark.CaffeModel
import libs.{Logger, ProtoLoader}
import loaders.ImageNetLoader
import org.apache.hadoop.fs.Path
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.types._
import preprocessing.{ComputeMean, ScaleAndConvert}

/** Trains CaffeNet on ImageNet: `ImageNetApp [--master=URL] WORKERS FOLDER [ROUNDS]`.
  *
  * FOLDER is a Hadoop path with the images in train and val, at any depth, and with train.txt and val.txt,
  * whose lines are a file's name and its class; files without a line are left out, and so are those
  * that are no images. Or it has SparkNet's tars: ILSVRC2012_img_train/train.000... and ILSVRC2012_img_val/val.00...,
  * whose files all need a line. In SPARKNET_HOME lie models/bvlc_reference_caffenet/solver.prototxt and
  * train_val.prototxt. Images are resized to 256 x 256, less their mean, and cut to 227 x 227. Weights are
  * averaged every 50 iterations and tested every 10 rounds; at the end they are in
  * bvlc_reference_caffenet.caffemodel there, and the mean in imagenet_mean.binaryproto.
  */
object ImageNetApp {
  val trainBatchSize = 256
  val fullHeight = 256
  val fullWidth = 256
  val croppedSize = 227
  private val syncInterval = 50
  private val someTars = Map("train" -> "train.000", "val" -> "val.00")

  def main(args: Array[String]): Unit =
    Averaging.run("ImageNet", args) { (spark, home, own, logger) =>
      if (own.length < 2) throw new IllegalArgumentException("the folder of the images is missing")
      val models = s"$home/models/bvlc_reference_caffenet"
      val model = train(
        spark, home, own(1), own.head.toInt, logger,
        ProtoLoader.loadNetPrototxt(s"$models/train_val.prototxt"),
        trainBatchSize, syncInterval, own.drop(2).headOption.fold(0)(_.toInt))
      Averaging.save(model, s"$home/bvlc_reference_caffenet.caffemodel", logger)
    }

  private[apps] def train(
      spark: SparkSession,
      home: String,
      folder: String,
      workers: Int,
      logger: Logger,
      net: NetParameter,
      batch: Int,
      syncInterval: Int,
      rounds: Int): CaffeModel = {
    val rows = images(spark, folder, "train").repartition(workers).cache()
    val testRows = images(spark, folder, "val").repartition(workers)
    logger.log(s"${rows.count()} images to train on")
    val mean = s"$home/imagenet_mean.binaryproto"
    ComputeMean.writeMeanToBinaryProto(
      ComputeMean.computeMean(rows, "data", Array(3, fullHeight, fullWidth)), mean)
    val onRows = Averaging.onRows(net, batch, 3, fullHeight, fullWidth).toBuilder
    onRows.getLayerBuilder(0).setTransformParam(
      TransformationParameter.newBuilder.setCropSize(croppedSize).setMeanFile(mean))
    val solver =
      ProtoLoader.loadSolverPrototxt(s"$home/models/bvlc_reference_caffenet/solver.prototxt")
    new Averaging(workers, syncInterval, testInterval = 10, logger)
      .train(solver, onRows.build, rows, testRows, rounds)
  }

  /** The images of a part, plane after plane, and their classes. */
  private[apps] def images(spark: SparkSession, folder: String, part: String): DataFrame = {
    val tars = new Path(folder, s"ILSVRC2012_img_$part")
    val images =
      if (tars.getFileSystem(spark.sparkContext.hadoopConfiguration).exists(tars))
        new ImageNetLoader(folder)(
          spark.sparkContext, s"${tars.getName}/${someTars(part)}", s"$part.txt", fullHeight, fullWidth)
      else ofFiles(spark, folder, part)
    spark.createDataFrame(images.map { case (planes, label) => Row(planes, label) }, StructType(Seq(
      StructField("data", BinaryType, nullable = false),
      StructField("label", IntegerType, nullable = false))))
  }

  private def ofFiles(spark: SparkSession, folder: String, part: String): RDD[(Array[Byte], Int)] = {
    val classes = spark.sparkContext.broadcast(
      spark.read.textFile(s"$folder/$part.txt").collect().map { line =>
        val Array(name, label) = line.trim.split("\\s+")
        name -> label.toInt
      }.toMap)
    val (height, width) = (fullHeight, fullWidth)
    val files = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
      .load(s"$folder/$part").select("path", "content")
    files.rdd.flatMap { row =>
      for {
        label <- classes.value.get(row.getString(0).split('/').last)
        planes <- ScaleAndConvert.decompressImageAndResize(row.getAs[Array[Byte]](1), height, width)
      } yield (planes, label)
    }
  }
}
