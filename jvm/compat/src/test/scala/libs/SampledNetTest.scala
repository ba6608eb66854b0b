// SPDX-License-Identifier: Apache-2.0
package libs

import java.nio.file.{Path, Paths}

import scala.util.Random

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** Nets that read minibatches of images, as SparkNet's first version has them. */
class SampledNetTest {
  @TempDir var folder: Path = _

  private val root = Paths.get(sys.props("root"))
  private val (batch, size) = (100, 32)

  private def cifar(): v1.CaffeNet = {
    val net = ProtoLoader.replaceDataLayers(
      ProtoLoader.loadNetPrototxt(root.resolve("examples/cifar10/quick_train_test.prototxt").toString),
      batch, batch, 3, size, size)
    v1.CaffeNet(ProtoLoader.loadSolverPrototxtWithNet(
      root.resolve("examples/cifar10/quick_solver.prototxt").toString, net, None))
  }

  private def sampler(seed: Int, batches: Int): MinibatchSampler = {
    val random = new Random(seed)
    val all = Seq.fill(batches) {
      val labels = Array.fill(batch)(random.nextInt(10))
      val images = labels.map { label =>
        val bytes = Array.fill(3 * size * size)((random.nextInt(60) + 15 * label).toByte)
        new ByteImage(bytes, size, size)
      }
      (images, labels)
    }
    new MinibatchSampler(all.iterator, batches, batches)
  }

  @Test def blobsAreThereByName(): Unit = {
    val net = cifar()
    val e = assertThrows(classOf[IllegalStateException], () => net.forward())
    assertEquals("call setTrainData first", e.getMessage)
    net.setTrainData(sampler(1, 1))
    net.forward()
    val data = net.getData()
    assertArrayEquals(Array(100, 32, 32, 32), data("conv1").shape)
    assertTrue(Set("data", "label", "conv1", "pool1", "ip1", "ip2", "loss").subsetOf(data.keySet))
    net.backward()
    assertTrue(net.getGradients().allWeights("conv1").head.toFlat().exists(_ != 0))
  }

  @Test def aNetThatHasLearntNothingGuesses(): Unit = {
    val net = cifar()
    assertThrows(classOf[IllegalStateException], () => { net.test(); () })
    net.setTestData(sampler(2, 4), 4)
    val scores = net.test()
    assertEquals(2, scores.length) // accuracy and loss, each summed over the minibatches
    assertTrue(scores(0) >= 0 && scores(0) < 4 * 0.3f, scores.mkString(" "))
    assertEquals(4 * math.log(10), scores(1), 1.0)
  }

  @Test def trainingMovesTheWeightsAndFilesKeepThem(): Unit = {
    val (net, other) = (cifar(), cifar())
    val mean = 120f
    val write = (image: ByteImage, floats: Array[Float]) => {
      image.cropInto(floats, Array(0, 0), Array(size, size))
      for (i <- floats.indices) floats(i) -= mean
    }
    net.setTrainData(sampler(3, 2), Some(write))
    val before = net.getWeights()
    net.train(2)
    assertFalse(WeightCollection.checkEqual(before, net.getWeights(), 1e-9f))
    assertThrows(classOf[NoSuchElementException], () => net.train(1))
    val file = folder.resolve("net.caffemodel").toString
    net.saveWeightsToFile(file)
    other.loadWeightsFromFile(file)
    assertTrue(WeightCollection.checkEqual(net.getWeights(), other.getWeights(), 0))
    val sum = WeightCollection.add(net.getWeights(), other.getWeights())
    sum.scalarDivide(2)
    other.setWeights(sum)
    assertTrue(WeightCollection.checkEqual(net.getWeights(), other.getWeights(), 0))
  }
}
