// SPDX-License-Identifier: Apache-2.0
package libs

import scala.collection.mutable.Map

import cafetiere.core.net.{Net => EngineNet, NetListener, Solver => EngineSolver}
import caffe.Caffe.SolverParameter

/** What libs.v1.CaffeNet is made of. The net's first input takes images, a second one labels. */
private[libs] class SampledNet(solverParameter: SolverParameter) {
  private type Preprocessing = Option[(ByteImage, Array[Float]) => Unit]
  private var trainData: Option[SamplerFeed] = None
  private var testData: Option[SamplerFeed] = None
  var testBatches: Int = -1

  val solver: EngineSolver = SteppedSolver(
    solverParameter,
    new NetListener { override def pass(): Unit = need(trainData, "setTrainData").fill() })
  val training: EngineNet = solver.net
  private lazy val testing = {
    val net = EngineNet.of(SteppedSolver.netOf(solverParameter).toString, "TEST")
    net.shareWith(training)
    net
  }
  val weights = new NetWeights(training)

  def setTrainData(sampler: MinibatchSampler, preprocessing: Preprocessing): Unit =
    trainData = Some(new SamplerFeed(training, sampler, preprocessing))

  def setTestData(sampler: MinibatchSampler, preprocessing: Preprocessing): Unit =
    testData = Some(new SamplerFeed(testing, sampler, preprocessing))

  def train(steps: Int): Unit = solver.step(steps)

  def forward(): Unit = {
    need(trainData, "setTrainData").fill()
    training.forward()
  }

  def backward(): Unit = {
    training.clearParamDiffs()
    training.backward()
  }

  def test(): Array[Float] = {
    if (testBatches < 0) throw new IllegalStateException("call setTestData or setNumTestBatches first")
    var sums = new Array[Float](0)
    for (_ <- 0 until testBatches) {
      need(testData, "setTestData").fill()
      testing.forward()
      val scores = Lists.of(testing.outputs).flatMap(number =>
        BlobArrays.data(testing.blob(number)).toFlat().toSeq).toArray
      sums = sums.zipAll(scores, 0f, 0f).map { case (a, b) => a + b }
    }
    sums
  }

  def blobs(): Map[String, NDArray] =
    Map(Lists.of(training.blobNames).map(name => name -> BlobArrays.copy(training.blob(name))): _*)

  private def need(feed: Option[SamplerFeed], call: String): SamplerFeed =
    feed.getOrElse(throw new IllegalStateException(s"call $call first"))
}

/** Minibatches of a sampler, written into a net's inputs. */
private class SamplerFeed(
    net: EngineNet,
    sampler: MinibatchSampler,
    preprocessing: Option[(ByteImage, Array[Float]) => Unit]) {
  private val inputs = Lists.of(net.inputs).map(_.intValue)
  if (inputs.isEmpty || inputs.length > 2)
    throw new IllegalArgumentException(
      s"the net has ${inputs.length} inputs, and needs one for images, or two for images and labels")

  def fill(): Unit = {
    val images = sampler.nextImageMinibatch()
    val blob = net.blob(inputs.head)
    val shape = BlobArrays.shape(blob)
    requireCount(images.length, shape)
    val floats = new Array[Float](shape.drop(1).product)
    val values = blob.data.asFloatBuffer
    for (image <- images) {
      preprocessing match {
        case Some(write) => write(image, floats)
        case None => image.cropInto(floats, Array(0, 0), shape.takeRight(2))
      }
      values.put(floats)
    }
    for (number <- inputs.drop(1)) {
      val labels = sampler.nextLabelMinibatch()
      val target = net.blob(number)
      requireCount(labels.length, BlobArrays.shape(target))
      target.data.asFloatBuffer.put(labels.map(_.toFloat))
    }
  }

  private def requireCount(found: Int, shape: Array[Int]): Unit =
    if (!shape.headOption.contains(found))
      throw new IllegalArgumentException(
        s"a minibatch has $found elements, and the net takes ${shape.headOption.getOrElse(1)}")
}
