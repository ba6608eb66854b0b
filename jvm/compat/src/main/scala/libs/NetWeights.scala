// SPDX-License-Identifier: Apache-2.0
package libs

import scala.collection.mutable.{ListBuffer, Map}

import cafetiere.core.net.{Blob, Net => EngineNet}

/** The parameters of a net as arrays, by layer. */
private[libs] class NetWeights(net: EngineNet) {

  /** The layers that have parameters, in the net's order, with the numbers of these. */
  private val layers: Seq[(String, Seq[Int])] = Lists.of(net.layers).collect {
    case layer if !layer.params.isEmpty => layer.name -> Lists.of(layer.params).map(_.intValue)
  }

  def layerNames: List[String] = layers.map(_._1).toList

  /** Copies of the weights. */
  def get(): Map[String, ListBuffer[NDArray]] = copies(BlobArrays.data)

  /** Copies of the gradients. */
  def gradients(): Map[String, ListBuffer[NDArray]] = copies(BlobArrays.diff)

  /** Replaces all weights.
    *
    * @throws IllegalArgumentException if layers, arrays or shapes differ; nothing is replaced then
    */
  def set(weights: Map[String, ListBuffer[NDArray]]): Unit = {
    CaffeWeightCollection.requireSameShapes(
      weights.filter { case (_, arrays) => arrays.nonEmpty },
      arrays(BlobArrays.data))
    for ((name, numbers) <- layers; (number, array) <- numbers.zip(weights(name)))
      net.param(number).data.asFloatBuffer.put(array.toFlat())
  }

  private def copies(view: Blob => NDArray): Map[String, ListBuffer[NDArray]] =
    arrays(view).map { case (name, views) => name -> views.map(v => NDArray(v.toFlat(), v.shape)) }

  private def arrays(view: Blob => NDArray): Map[String, ListBuffer[NDArray]] =
    Map(layers.map { case (name, numbers) =>
      name -> ListBuffer(numbers.map(number => view(net.param(number))): _*)
    }: _*)
}

/** A blob's memory as arrays, without a copy. */
private[libs] object BlobArrays {
  def data(blob: Blob): NDArray = NDArray.wrap(blob.data.asFloatBuffer, shape(blob))
  def diff(blob: Blob): NDArray = NDArray.wrap(blob.diff.asFloatBuffer, shape(blob))
  def shape(blob: Blob): Array[Int] = blob.shape.map(_.toInt)

  /** A copy of a blob's values. */
  def copy(blob: Blob): NDArray = NDArray(data(blob).toFlat(), shape(blob))
}

/** Java's lists as Scala's, on both lines of Scala. */
private[libs] object Lists {
  def of[T](list: java.util.List[T]): Seq[T] = list.toArray.toSeq.map(_.asInstanceOf[T])
}
