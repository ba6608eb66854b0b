// SPDX-License-Identifier: Apache-2.0
package libs

import scala.collection.mutable.{ListBuffer, Map}

/** The weights of a net.
  *
  * @param allWeights the arrays of each layer that has any
  * @param layerNames these layers, in the net's order
  */
class WeightCollection(
    val allWeights: Map[String, ListBuffer[NDArray]],
    val layerNames: List[String])
    extends java.io.Serializable {
  val numLayers: Int = layerNames.length

  /** Divides every weight. */
  def scalarDivide(v: Float): Unit = CaffeWeightCollection.scalarDivide(allWeights, v)
}

object WeightCollection extends java.io.Serializable {

  /** The sums.
    *
    * @throws IllegalArgumentException if layers, arrays or shapes differ
    */
  def add(wc1: WeightCollection, wc2: WeightCollection): WeightCollection = {
    requireSameLayers(wc1, wc2)
    new WeightCollection(CaffeWeightCollection.add(wc1.allWeights, wc2.allWeights), wc1.layerNames)
  }

  /** Whether no two weights are further apart than `tol`.
    *
    * @throws IllegalArgumentException if layers, arrays or shapes differ
    */
  def checkEqual(wc1: WeightCollection, wc2: WeightCollection, tol: Float): Boolean = {
    requireSameLayers(wc1, wc2)
    CaffeWeightCollection.requireSameShapes(wc1.allWeights, wc2.allWeights)
    CaffeWeightCollection.checkEqual(wc1.allWeights, wc2.allWeights, tol)
  }

  private def requireSameLayers(wc1: WeightCollection, wc2: WeightCollection): Unit =
    if (wc1.layerNames != wc2.layerNames)
      throw new IllegalArgumentException(
        s"layers differ: ${wc1.layerNames.mkString(" ")} and ${wc2.layerNames.mkString(" ")}")
}

/** The same for weights that stand in a plain map. */
object CaffeWeightCollection {

  /** Divides every weight. */
  def scalarDivide(weights: Map[String, ListBuffer[NDArray]], v: Float): Unit =
    for (arrays <- weights.values; array <- arrays) array.scalarDivide(v)

  /** The sums.
    *
    * @throws IllegalArgumentException if layers, arrays or shapes differ
    */
  def add(
      weights1: Map[String, ListBuffer[NDArray]],
      weights2: Map[String, ListBuffer[NDArray]]): Map[String, ListBuffer[NDArray]] = {
    requireSameShapes(weights1, weights2)
    weights1.map { case (name, arrays) =>
      name -> arrays.zip(weights2(name)).map { case (a, b) => NDArray.plus(a, b) }
    }
  }

  /** Whether layers and shapes are equal, and no two weights are further apart than `tol`. */
  def checkEqual(
      weights1: Map[String, ListBuffer[NDArray]],
      weights2: Map[String, ListBuffer[NDArray]],
      tol: Float): Boolean =
    weights1.keySet == weights2.keySet && weights1.forall { case (name, arrays) =>
      arrays.length == weights2(name).length &&
        arrays.zip(weights2(name)).forall { case (a, b) => NDArray.checkEqual(a, b, tol) }
    }

  private[libs] def requireSameShapes(
      weights1: Map[String, ListBuffer[NDArray]],
      weights2: Map[String, ListBuffer[NDArray]]): Unit = {
    def shapes(weights: Map[String, ListBuffer[NDArray]]) =
      weights.toList.map { case (name, arrays) => name -> arrays.toList.map(_.shape.toList) }.toMap
    val (one, other) = (shapes(weights1), shapes(weights2))
    for (name <- (one.keySet ++ other.keySet).toList.sorted if one.get(name) != other.get(name))
      throw new IllegalArgumentException(
        s"layer $name has arrays of shapes ${one.getOrElse(name, Nil)} and " +
          s"${other.getOrElse(name, Nil)}")
  }
}
