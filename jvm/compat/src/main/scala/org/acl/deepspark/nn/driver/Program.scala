// SPDX-License-Identifier: Apache-2.0
package org.acl.deepspark.nn.driver

import java.nio.file.{Files, Paths}

import scala.collection.immutable.Seq

import caffe.Caffe.{DeepSparkParam, SolverParameter}
import cafetiere.protobuf.TextFormat
import cafetiere.spark.{CaffeEstimator, CaffeModel}
import libs.ProtoLoader
import misc.{WeightConverter2, WeightSnapshots}
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.functions.{col, udf}
import org.apache.spark.sql.{DataFrame, SparkSession}

/** A training as DeepSpark's programs do them. They take `SOLVER NET`, files of this machine, and behind
  * these and their own argument the Hadoop paths of other images than those that they read by themselves:
  * `[TRAIN [TEST]]`. There are as many workers as spark.executor.instances says.
  */
private[driver] class Program(val spark: SparkSession, args: Seq[String], own: Int) {
  private val solver = ProtoLoader.loadSolverPrototxt(args(0))
  private val net = ProtoLoader.loadNetPrototxt(args(1))

  val workers: Int =
    spark.sparkContext.getConf.getInt("spark.executor.instances", spark.sparkContext.defaultParallelism)

  /** Images in one of DeepSpark's forms, at the path that argument number `place` behind the program's own
    * names, or at `otherwise`.
    */
  def images(form: String, place: Int, otherwise: String): DataFrame =
    spark.read.format("pixels").option("form", form).load(args.lift(own + place).getOrElse(otherwise))

  /** Workers that add the sums of their last `inner` updates to the center, and take it then. They share the
    * solver's iterations, as DeepSpark's do.
    */
  def downpour(rows: DataFrame, inner: Int): CaffeModel = {
    val each = solver.toBuilder.setMaxIter(math.max(1, solver.getMaxIter / workers))
    fit(rows, each, _.setSyncMode("downpour").setSyncPeriod(inner))
  }

  /** Asynchronous elastic averaging as the parameter file says, each worker for the solver's iterations. In
    * mid-run its snapshots become files of DeepSpark's.
    *
    * @param adaptive whether the period grows as the loss falls
    */
  def easgd(rows: DataFrame, adaptive: Boolean): CaffeModel = {
    val file = Paths.get(args(2))
    val set = (estimator: CaffeEstimator) => {
      estimator.setSyncMode("easgd").setSyncParamFile(s"file:${file.toAbsolutePath}")
      if (adaptive) estimator.setSyncOptions("adaptive_period: true")
      estimator
    }
    val own = solver.toBuilder
    if (!solver.hasSnapshotPrefix || solver.getSnapshot < 1) return fit(rows, own, set)
    val folder = new Path(solver.getSnapshotPrefix)
    val here = folder.getFileSystem(spark.sparkContext.hadoopConfiguration).makeQualified(folder)
    own.setSnapshotPrefix(s"$here/state")
    val exchanges = solver.getSnapshot.toLong * workers / param(file.toString).getPeriod
    val snapshots = new WeightSnapshots(own.getSnapshotPrefix, args(1), shape(rows))(step =>
      s"$here/state_iter_${math.max(1, exchanges) * (step / solver.getSnapshot)}.weight")
    try fit(rows, own, set)
    finally snapshots.close()
  }

  /** Writes the weights as a file of DeepSpark's, into this machine's current folder. */
  def saveWeight(model: CaffeModel, rows: DataFrame, name: String): Unit = {
    val made = Files.createTempFile("cafetiere", ".caffemodel")
    try {
      Files.write(made, model.weights)
      WeightConverter2.convertCaffeModel(made.toString, name, args(0), args(1), shape(rows))
    } finally Files.delete(made)
  }

  /** Tells how many of these images the model knows. */
  def tellAccuracy(model: CaffeModel, rows: DataFrame): Unit = {
    val right = model.transform(rows).filter(col("prediction") === col("label")).count()
    println(f"Accuracy: ${right.toFloat / rows.count()}%f ")
  }

  private def fit(
      rows: DataFrame, own: SolverParameter.Builder, set: CaffeEstimator => CaffeEstimator): CaffeModel = {
    println("Start Learning...")
    val begun = System.nanoTime
    own.clearNet.clearNetParam.clearTrainNet.clearTestNet.clearTestInterval.clearTestIter
    val model = set(new CaffeEstimator()).setSolver(own.build.toString).setNet(net.toString)
      .setFeaturesCol("data").setLabelCol("label").setNumWorkers(workers).fit(rows.repartition(workers))
    println(f"Training time: ${(System.nanoTime - begun) / 1e9}%f secs")
    model
  }

  private def param(file: String): DeepSparkParam = {
    val text = new String(Files.readAllBytes(Paths.get(file)), "UTF-8")
    val param = DeepSparkParam.newBuilder
    TextFormat.merge(text, param)
    param.build
  }

  private def shape(rows: DataFrame): Array[Int] = {
    val first = rows.select("channels", "height", "width").first()
    Array(first.getInt(0), first.getInt(1), first.getInt(2))
  }
}

private[driver] object Program {
  /** Runs one, in a session of its own unless there is one.
    *
    * @param own its own argument behind solver and net, in words; "" for none
    */
  def run(name: String, args: Array[String], own: String)(body: Program => Unit): Unit = {
    val fixed = if (own.isEmpty) 2 else 3
    if (args.length < fixed) {
      val usage = scala.Seq(name, "SOLVER NET", own, "[TRAIN [TEST]]").filter(_.nonEmpty).mkString(" ")
      throw new IllegalArgumentException(s"$usage: there are ${args.length} arguments")
    }
    for ((argument, path) <- scala.Seq("SOLVER", "NET").zip(args.toSeq) if !Files.isRegularFile(Paths.get(path)))
      throw new IllegalArgumentException(s"$argument is $path, and this machine has no such file: correct the path")
    val isOwn = SparkSession.getDefaultSession.isEmpty
    val spark = SparkSession.builder().appName(name).getOrCreate()
    try body(new Program(spark, args.toList, fixed))
    finally if (isOwn) spark.stop()
  }

  /** Pixels from 0 to 1. */
  def scaled(rows: DataFrame): DataFrame =
    changed(rows)(pixels => pixels.map(pixel => (pixel & 0xff) / 255f))

  /** Pixels less the mean of their image. */
  def centered(rows: DataFrame): DataFrame = changed(rows) { pixels =>
    val mean = pixels.map(_ & 0xff).sum.toFloat / pixels.length
    pixels.map(pixel => (pixel & 0xff) - mean)
  }

  private def changed(rows: DataFrame)(change: Array[Byte] => Array[Float]): DataFrame =
    rows.withColumn("data", udf(change).apply(col("data")))
}
