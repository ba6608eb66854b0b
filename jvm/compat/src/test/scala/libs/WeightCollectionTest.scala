// SPDX-License-Identifier: Apache-2.0
package libs

import scala.collection.mutable.{ListBuffer, Map}

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class WeightCollectionTest {
  private def weights(scale: Float, biases: Int = 2): WeightCollection = {
    val arrays = Map(
      "conv1" -> ListBuffer(
        NDArray(Array(1f, 2f, 3f, 4f).map(_ * scale), Array(2, 2)),
        NDArray(Array.fill(biases)(scale), Array(biases))),
      "ip1" -> ListBuffer(NDArray(Array(5f * scale), Array(1))))
    new WeightCollection(arrays, List("conv1", "ip1"))
  }

  private def flat(w: WeightCollection): List[Float] =
    w.layerNames.flatMap(name => w.allWeights(name).flatMap(_.toFlat().toList))

  @Test def theMeanOfTwo(): Unit = {
    val sum = WeightCollection.add(weights(1), weights(3))
    sum.scalarDivide(2)
    assertEquals(2, sum.numLayers)
    assertEquals(flat(weights(2)), flat(sum))
    assertTrue(WeightCollection.checkEqual(weights(2), sum, 0))
    assertFalse(WeightCollection.checkEqual(weights(2.1f), sum, 0.01f))
    assertTrue(CaffeWeightCollection.checkEqual(weights(2.001f).allWeights, sum.allWeights, 0.01f))
  }

  @Test def otherShapesAreRefusedByName(): Unit = {
    def message(code: => Any): String =
      assertThrows(classOf[IllegalArgumentException], () => { code; () }).getMessage
    val said = message(WeightCollection.add(weights(1), weights(1, biases = 3)))
    assertTrue(said.startsWith("layer conv1 has arrays of shapes"), said)
    val fewer = new WeightCollection(weights(1).allWeights, List("conv1"))
    assertEquals("layers differ: conv1 ip1 and conv1", message(WeightCollection.add(weights(1), fewer)))
    assertFalse(CaffeWeightCollection.checkEqual(
      weights(1).allWeights, weights(1, biases = 3).allWeights, 1))
  }
}
