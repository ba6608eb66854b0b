// SPDX-License-Identifier: Apache-2.0
package misc

import caffe.Caffe.{BlobShape, InputParameter, LayerParameter}
import cafetiere.core.net.{Blob, Net => EngineNet}
import libs.ProtoLoader

/** The parameters of a net. */
private[misc] class ConvertedNet(net: EngineNet) extends AutoCloseable {

  /** A parameter's number, and its layer with its place there; of those that layers share the first. */
  private val params: Seq[(Int, String, Int)] =
    (for {
      layer <- seq(net.layers)
      (number, place) <- seq(layer.params).map(_.intValue).zipWithIndex
    } yield (number, layer.name, place)).groupBy(_._1).values.map(_.head).toSeq.sortBy(_._1)

  /** Copies of the parameters, in the net's order. */
  def get(): Seq[Array[Float]] = params.map { case (number, _, _) =>
    val blob = net.param(number)
    val values = new Array[Float](blob.count)
    blob.data.asFloatBuffer.get(values)
    values
  }

  /** Replaces all of them.
    *
    * @param path where they are from, for errors
    */
  def set(values: Seq[Array[Float]], path: String): Unit = {
    if (values.length != params.length)
      throw misfit(path, s"it has ${values.length} parameters and the net ${params.length}")
    for (((number, layer, place), array) <- params.zip(values)) {
      val blob = net.param(number)
      if (array.length != blob.count)
        throw misfit(path, s"parameter $place of layer $layer has shape ${shape(blob)}, and the file " +
          s"${array.length} values for it")
      blob.data.asFloatBuffer.put(array)
    }
  }

  /** The same by layer; layers that the net has not are left out. */
  def set(layers: Map[String, Seq[Array[Float]]], path: String): Unit =
    set(
      params.map { case (_, layer, place) =>
        val arrays = layers.getOrElse(layer, throw misfit(path, s"it has no layer $layer"))
        arrays.lift(place).getOrElse(
          throw misfit(path, s"its layer $layer has ${arrays.length} arrays, and the net more"))
      },
      path)

  /** Takes all parameters from a .caffemodel, or its HDF5 form. */
  def load(path: String): Unit = {
    // What the model lacks keeps its values: these tell it.
    for ((number, _, _) <- params) {
      val values = net.param(number).data.asFloatBuffer
      while (values.hasRemaining) values.put(Float.NaN)
    }
    Places.reading(path)(net.copyFrom(_))
    for (((_, layer, place), values) <- params.zip(get()) if values.forall(_.isNaN))
      throw misfit(path, s"it has no values for parameter $place of layer $layer")
  }

  /** Writes a .caffemodel. */
  def save(path: String): Unit = Places.writing(path)(net.save(_))

  override def close(): Unit = net.close()

  private def shape(blob: Blob): String = blob.shape.mkString("(", ", ", ")")

  private def misfit(path: String, what: String) =
    new IllegalArgumentException(s"$path does not fit the net: $what")

  /** Java's list on both lines of Scala. */
  private def seq[T](list: java.util.List[T]): Seq[T] = list.toArray.toSeq.map(_.asInstanceOf[T])
}

private[misc] object ConvertedNet {
  private val fromFiles = Set("Data", "ImageData", "HDF5Data", "WindowData")

  /** The net of a prototxt file; no layer of it opens a file.
    *
    * @param shape of what those layers give first
    */
  def read(path: String, shape: Option[Array[Int]]): ConvertedNet = {
    val net = Places.reading(path)(ProtoLoader.loadNetPrototxt(_)).toBuilder
    for (i <- 0 until net.getLayerCount; layer = net.getLayer(i))
      if (fromFiles(layer.getType))
        net.setLayer(i, input(layer, shape.getOrElse(throw new IllegalArgumentException(
          s"$path: layer ${layer.getName} reads files: give its images' shape, such as 3,32,32, behind the paths"))))
      else if (layer.getTransformParam.hasMeanFile)
        net.getLayerBuilder(i).getTransformParamBuilder.clearMeanFile()
    new ConvertedNet(EngineNet.of(net.build.toString, "TRAIN"))
  }

  private def input(layer: LayerParameter, shape: Array[Int]): LayerParameter = {
    val shapes = InputParameter.newBuilder()
    for (top <- 0 until layer.getTopCount) {
      val one = BlobShape.newBuilder().addDim(1)
      if (top == 0) shape.foreach(size => one.addDim(size.toLong))
      shapes.addShape(one)
    }
    val made = LayerParameter.newBuilder().setName(layer.getName).setType("Input").setInputParam(shapes)
    (0 until layer.getTopCount).foreach(top => made.addTop(layer.getTop(top)))
    (0 until layer.getIncludeCount).foreach(rule => made.addInclude(layer.getInclude(rule)))
    (0 until layer.getExcludeCount).foreach(rule => made.addExclude(layer.getExclude(rule)))
    made.build()
  }
}
