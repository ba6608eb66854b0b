// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import caffe.Caffe.{LayerParameter, NetParameter, Phase, SolverParameter}
import cafetiere.jcaffe.ForkText
import cafetiere.protobuf.{Message, TextFormat}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.SparkContext

/** A solver and its net. Their texts travel; the messages are made of them where they are asked for. */
private[caffe] class Prototxt private (path: String, solverText: String, netPath: String, netText: String)
    extends Serializable {
  @transient lazy val solver: SolverParameter =
    Prototxt.parsed(path, solverText, SolverParameter.newBuilder()).build()

  @transient lazy val net: NetParameter =
    if (netPath.isEmpty) solver.getNetParam
    else Prototxt.parsed(netPath, netText, NetParameter.newBuilder()).build()

  /** The first layer that is fed from outside in this phase, those that name a source first; -1 for none. */
  def dataLayer(phase: Phase): Int = {
    val layers = (0 until net.getLayerCount).filter(id => isFed(net.getLayer(id), phase))
    layers.find(net.getLayer(_).hasSourceClass).orElse(layers.headOption).getOrElse(-1)
  }

  private def isFed(layer: LayerParameter, phase: Phase): Boolean = {
    def isOf(rule: caffe.Caffe.NetStateRule) = !rule.hasPhase || rule.getPhase == phase
    val included = (0 until layer.getIncludeCount).map(layer.getInclude(_))
    val excluded = (0 until layer.getExcludeCount).map(layer.getExclude(_))
    layer.getBottomCount == 0 && layer.getTopCount > 0 && Prototxt.dataTypes(layer.getType) &&
    (included.isEmpty || included.exists(isOf)) && !excluded.exists(isOf)
  }
}

private[caffe] object Prototxt {
  private val dataTypes = Set("MemoryData", "CoSData", "Input", "Data", "ImageData", "HDF5Data")

  /** @throws IllegalArgumentException if a file cannot be read; names it, and the line of a fault */
  def read(path: String, sc: SparkContext): Prototxt = {
    val hadoop = if (sc == null) new Configuration() else sc.hadoopConfiguration
    val solverText = text(path, hadoop).getOrElse(
      throw new IllegalArgumentException(s"-conf $path: there is no such file"))
    val solver = parsed(path, solverText, SolverParameter.newBuilder()).build()
    val read =
      if (!solver.hasNet) new Prototxt(path, solverText, "", "")
      else {
        val places = Seq(solver.getNet, beside(path, solver.getNet))
        val (place, found) = places.flatMap(place => text(place, hadoop).map(place -> _)).headOption
          .getOrElse(throw new IllegalArgumentException(
            s"$path: its net ${solver.getNet} is neither there nor beside it"))
        new Prototxt(path, solverText, place, found)
      }
    read.net
    read
  }

  private def beside(path: String, name: String): String = {
    val last = name.substring(name.lastIndexOf('/') + 1)
    path.substring(0, path.lastIndexOf('/') + 1) + last
  }

  private def text(path: String, hadoop: Configuration): Option[String] = {
    val located = ImageDataSource.located(path)
    val local = Paths.get(if (path.startsWith("file:")) new Path(located).toUri.getPath else path)
    try {
      if (Files.exists(local)) return Some(new String(Files.readAllBytes(local), UTF_8))
      val file = new Path(located)
      val files = file.getFileSystem(hadoop)
      if (!files.exists(file)) return None
      val in = files.open(file)
      try Some(new String(org.apache.commons.io.IOUtils.toByteArray(in), UTF_8))
      finally in.close()
    } catch {
      case e: IOException => throw new IllegalArgumentException(s"$path cannot be read: ${e.getMessage}", e)
    }
  }

  private def parsed[B <: Message.Builder](path: String, text: String, builder: B): B = {
    try ForkText.merge(path, text, builder)
    catch {
      case e: TextFormat.ParseException =>
        throw new IllegalArgumentException(s"$path:${e.getMessage}", e)
    }
    builder
  }
}
