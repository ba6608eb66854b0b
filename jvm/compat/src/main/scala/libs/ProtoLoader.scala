// SPDX-License-Identifier: Apache-2.0
package libs

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import cafetiere.jcaffe.ForkText
import cafetiere.protobuf.{Message, TextFormat}
import caffe.Caffe.{LayerParameter, NetParameter, SolverParameter}

/** Reads Caffe's prototxt files, and puts a net that is fed by rows into a solver. Paths are local. */
object ProtoLoader {

  /** @throws IllegalArgumentException if the text has a fault; names the file and the line
    * @throws java.io.IOException if the file cannot be read
    */
  def loadSolverPrototxt(filename: String): SolverParameter =
    read(filename, SolverParameter.newBuilder()).build()

  /** As loadSolverPrototxt does, and refuses nets of before 2014, which hold `layers`. */
  def loadNetPrototxt(filename: String): NetParameter = {
    val net = read(filename, NetParameter.newBuilder()).build()
    if (net.getLayersCount > 0)
      throw new IllegalArgumentException(
        s"$filename: this net has the older form 'layers'; write it anew with upgrade_net_proto_text")
    net
  }

  /** A solver with a net inside.
    *
    * @param snapshotPath what the names of snapshots begin with; None: no snapshots
    */
  def loadSolverPrototxtWithNet(
      solverFilename: String,
      netParameter: NetParameter,
      snapshotPath: Option[String]): SolverParameter = {
    val solver = loadSolverPrototxt(solverFilename).toBuilder.clearNet().setNetParam(netParameter)
    snapshotPath match {
      case Some(prefix) => solver.setSnapshotPrefix(prefix)
      case None => solver.clearSnapshot().clearSnapshotPrefix()
    }
    solver.build()
  }

  /** A solver with the net of another file inside. */
  def loadSolverWithNetPrototxt(
      solverFilename: String,
      netFilename: String,
      snapshotPath: Option[String]): SolverParameter =
    loadSolverPrototxtWithNet(solverFilename, loadNetPrototxt(netFilename), snapshotPath)

  /** The net with layers `data` and `label`, in each phase, in place of its first two layers.
    *
    * @throws IllegalArgumentException if the first two layers are no data layers
    */
  def replaceDataLayers(
      netParameter: NetParameter,
      trainBatchSize: Int,
      testBatchSize: Int,
      numChannels: Int,
      height: Int,
      width: Int): NetParameter = {
    for (i <- 0 until 2) requireDataLayer(netParameter, i)
    def layers(batch: Int, phase: Include.Include): Seq[LayerParameter] = Seq(
      RDDLayer("data", List(batch, numChannels, height, width), Some(phase)),
      RDDLayer("label", List(batch, 1), Some(phase)))
    val Seq(trainData, trainLabel) = layers(trainBatchSize, Include.Train)
    val Seq(testData, testLabel) = layers(testBatchSize, Include.Test)
    netParameter.toBuilder
      .setLayer(0, trainData)
      .setLayer(1, trainLabel)
      .addLayer(0, testData)
      .addLayer(1, testLabel)
      .build()
  }

  private def requireDataLayer(net: NetParameter, index: Int): Unit =
    if (index >= net.getLayerCount || net.getLayer(index).getBottomCount > 0) {
      val there = if (index < net.getLayerCount) s"is ${net.getLayer(index).getName}" else "is missing"
      throw new IllegalArgumentException(
        s"net ${net.getName}: layer $index $there; the first two must be the data layers to replace")
    }

  private def read[B <: Message.Builder](filename: String, builder: B): B = {
    val text = new String(Files.readAllBytes(Paths.get(filename)), UTF_8)
    try ForkText.merge(filename, text, builder)
    catch {
      case e: TextFormat.ParseException =>
        throw new IllegalArgumentException(s"$filename:${e.getMessage}", e)
    }
    builder
  }
}
