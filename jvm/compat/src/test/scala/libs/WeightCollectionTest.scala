// SPDX-License-Identifier: Apache-2.0
package libs

import scala.collection.mutable.{ListBuffer, Map}

import org.apache.spark.SparkConf
import org.apache.spark.serializer.{JavaSerializer, KryoSerializer}
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

  /** As a broadcast, a result or a file of Java's, and with Spark's other serializer. */
  @Test def itTravels(): Unit = {
    val conf = new SparkConf
    for (serializer <- Seq(new JavaSerializer(conf), new KryoSerializer(conf))) {
      val instance = serializer.newInstance()
      val sent = weights(3)
      val back = instance.deserialize[WeightCollection](instance.serialize(sent))
      assertEquals(sent.layerNames, back.layerNames)
      assertTrue(WeightCollection.checkEqual(sent, back, 0))
      back.scalarDivide(3)
      assertTrue(WeightCollection.checkEqual(weights(1), back, 0))
      assertTrue(WeightCollection.checkEqual(weights(3), sent, 0))
    }
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
