// SPDX-License-Identifier: Apache-2.0
package apps

import java.nio.file.{Files, Paths}

import caffe.Caffe.{LayerParameter, MemoryDataParameter, NetParameter, SolverParameter}
import cafetiere.spark.{CaffeEstimator, CaffeModel}
import com.fasterxml.jackson.databind.ObjectMapper
import libs.Logger
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.{DataFrame, SparkSession}

/** SparkNet's method: every worker trains on its own for some iterations, then the weights are averaged.
  *
  * @param syncInterval iterations of a round
  * @param testInterval rounds between tests
  */
private[apps] class Averaging(workers: Int, syncInterval: Int, testInterval: Int, logger: Logger) {

  /** Trains on rows with the columns data and label, and tells the accuracy on others.
    *
    * @param rounds to train for; 0: to the solver's max_iter
    */
  def train(
      solver: SolverParameter,
      net: NetParameter,
      rows: DataFrame,
      testRows: DataFrame,
      rounds: Int): CaffeModel = {
    val own = solver.toBuilder.clearNet.clearNetParam.clearSnapshot.setSnapshotAfterTrain(false)
      .clearTestIter.addTestIter(1).setTestInterval(syncInterval * testInterval)
    if (rounds > 0) own.setMaxIter(rounds * syncInterval)
    logger.log(s"training: ${own.getMaxIter} iterations on $workers workers")
    val held = "held_out"
    val model = new CaffeEstimator()
      .setSolver(own.build.toString)
      .setNet(net.toString)
      .setFeaturesCol("data")
      .setLabelCol("label")
      .setNumWorkers(workers)
      .setSyncMode("average")
      .setSyncPeriod(syncInterval)
      .setValidationIndicatorCol(held)
      .fit(rows.withColumn(held, lit(false)).union(testRows.withColumn(held, lit(true))))
    val mapper = new ObjectMapper
    for (line <- model.events.linesIterator.map(mapper.readTree(_)) if line.path("event").asText == "test") {
      val accuracy = line.path("outputs").path("accuracy").asDouble
      logger.log(f"${100 * accuracy}%.2f%% accuracy", line.path("step").asInt / syncInterval)
    }
    model
  }
}

private[apps] object Averaging {

  /** The net with one layer in place of those that read data: it takes the columns data and label. */
  def onRows(net: NetParameter, batch: Int, channels: Int, height: Int, width: Int): NetParameter = {
    val builder = net.toBuilder.clearLayer.clearInput.clearInputShape.clearInputDim
    builder.addLayer(LayerParameter.newBuilder.setName("rows").setType("MemoryData")
      .addTop("data").addTop("label")
      .setMemoryDataParam(MemoryDataParameter.newBuilder.setBatchSize(batch)
        .setChannels(channels).setHeight(height).setWidth(width)))
    for (i <- 0 until net.getLayerCount if net.getLayer(i).getBottomCount > 0)
      builder.addLayer(net.getLayer(i))
    builder.build
  }

  /** Runs a program with what its arguments say, and its log.
    *
    * @param args "--master=URL", if Spark is not told otherwise, then those of the program
    */
  def run(name: String, args: Array[String])(
      program: (SparkSession, String, Seq[String], Logger) => Unit): Unit = {
    val (options, own) = args.toSeq.partition(_.startsWith("--"))
    for (option <- options if !option.startsWith("--master="))
      throw new IllegalArgumentException(s"there is no option $option, only --master=URL")
    if (own.isEmpty)
      throw new IllegalArgumentException("the number of workers is missing: [--master=URL] WORKERS")
    val home = sys.props.getOrElse("sparknet.home", sys.env.getOrElse(
      "SPARKNET_HOME", throw new IllegalArgumentException("set SPARKNET_HOME to SparkNet's folder")))
    if (!Files.isDirectory(Paths.get(home)))
      throw new IllegalArgumentException(s"SPARKNET_HOME is $home, which is no folder: set it to SparkNet's")
    val builder = SparkSession.builder().appName(name)
    options.foreach(option => builder.master(option.stripPrefix("--master=")))
    val spark = builder.getOrCreate()
    val logger = new Logger(s"$home/training_log_${System.currentTimeMillis()}.txt")
    try program(spark, home, own, logger)
    finally spark.stop()
  }

  /** Keeps a model's weights as a .caffemodel. */
  def save(model: CaffeModel, file: String, logger: Logger): Unit = {
    Files.write(Paths.get(file), model.weights)
    logger.log(s"the weights are in $file")
  }
}
