// SPDX-License-Identifier: Apache-2.0
package libs.v1

import libs.{ByteImage, MinibatchSampler, NDArray, WeightCollection}

import scala.collection.mutable.Map

import caffe.Caffe.SolverParameter

/** A net that trains on minibatches of images, as SparkNet's first version had it. */
trait Net {

  /** What to train on.
    *
    * @param trainPreprocessing writes an image into the floats that the net has for it; else its bytes
    *   are taken as they are
    */
  def setTrainData(
      minibatchSampler: MinibatchSampler,
      trainPreprocessing: Option[(ByteImage, Array[Float]) => Unit] = None): Unit

  /** What to test on, so many minibatches of it. */
  def setTestData(
      minibatchSampler: MinibatchSampler,
      numBatches: Int,
      testPreprocessing: Option[(ByteImage, Array[Float]) => Unit] = None): Unit

  /** Does so many iterations. */
  def train(numSteps: Int): Unit

  /** Each value of the net's outputs in phase TEST, summed over the minibatches. */
  def test(): Array[Float]

  /** Runs the net to train on the next minibatch. */
  def forward(): Unit

  /** Computes the gradients of what was run last. */
  def backward(): Unit

  /** Replaces all weights. */
  def setWeights(allWeights: WeightCollection): Unit

  /** Copies of the weights. */
  def getWeights(): WeightCollection
}

/** Such a net and its solver, which runs on the CPU. For one thread at a time. */
class CaffeNet private (inner: libs.SampledNet) extends Net {
  def setTrainData(
      minibatchSampler: MinibatchSampler,
      trainPreprocessing: Option[(ByteImage, Array[Float]) => Unit] = None): Unit =
    inner.setTrainData(minibatchSampler, trainPreprocessing)

  def setTestData(
      minibatchSampler: MinibatchSampler,
      numBatches: Int,
      testPreprocessing: Option[(ByteImage, Array[Float]) => Unit] = None): Unit = {
    inner.setTestData(minibatchSampler, testPreprocessing)
    inner.testBatches = numBatches
  }

  /** Tests on another number of minibatches. */
  def setNumTestBatches(numBatches: Int): Unit = inner.testBatches = numBatches

  def train(numSteps: Int): Unit = inner.train(numSteps)
  def test(): Array[Float] = inner.test()
  def forward(): Unit = inner.forward()
  def backward(): Unit = inner.backward()

  /** Copies of all blobs of the net to train. */
  def getData(): Map[String, NDArray] = inner.blobs()

  def setWeights(allWeights: WeightCollection): Unit = inner.weights.set(allWeights.allWeights)

  def getWeights(): WeightCollection =
    new WeightCollection(inner.weights.get(), inner.weights.layerNames)

  /** Copies of the gradients that `backward` has computed. */
  def getGradients(): WeightCollection =
    new WeightCollection(inner.weights.gradients(), inner.weights.layerNames)

  /** Takes the weights of the layers of the same names from a .caffemodel. */
  def loadWeightsFromFile(filename: String): Unit = inner.training.copyFrom(filename)

  /** Writes the weights as a .caffemodel. */
  def saveWeightsToFile(filename: String): Unit = inner.training.save(filename)

  /** Goes on from a .solverstate and the weights that it names. */
  def restoreSolverFromFile(filename: String): Unit = inner.solver.restore(filename)
}

object CaffeNet {

  /** A net and solver of a parameter that holds its net, as ProtoLoader makes it. */
  def apply(solverParameter: SolverParameter): CaffeNet =
    new CaffeNet(new libs.SampledNet(solverParameter))
}
