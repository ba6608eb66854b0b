// SPDX-License-Identifier: Apache-2.0
package libs

import scala.util.Random

/** Gives numSampledBatches minibatches that follow each other, from a random place of an iterator.
  * Images and labels of a minibatch are asked for one after the other, in either order.
  *
  * @param minibatchIt images and labels of each minibatch
  * @param totalNumBatches how many it has
  * @param numSampledBatches how many of them are given
  */
class MinibatchSampler(
    minibatchIt: Iterator[(Array[ByteImage], Array[Int])],
    totalNumBatches: Int,
    numSampledBatches: Int) {
  if (numSampledBatches < 0 || numSampledBatches > totalNumBatches)
    throw new IllegalArgumentException(
      s"$numSampledBatches minibatches of $totalNumBatches cannot be sampled")

  /** The index of the first minibatch that is given. */
  val startIdx: Int = Random.nextInt(totalNumBatches - numSampledBatches + 1)

  /** The indices of those that are given. */
  val indices: Array[Int] = Array.range(startIdx, startIdx + numSampledBatches)

  private val window = minibatchIt.slice(startIdx, startIdx + numSampledBatches)
  private var images: Option[Array[ByteImage]] = None
  private var labels: Option[Array[Int]] = None

  /** The images of the next minibatch, or of that whose labels were given last. */
  def nextImageMinibatch(): Array[ByteImage] = {
    if (images.isEmpty) advance()
    val next = images.get
    images = None
    next
  }

  /** The labels of the next minibatch, or of that whose images were given last. */
  def nextLabelMinibatch(): Array[Int] = {
    if (labels.isEmpty) advance()
    val next = labels.get
    labels = None
    next
  }

  private def advance(): Unit = {
    if (!window.hasNext)
      throw new NoSuchElementException(s"all $numSampledBatches sampled minibatches were given")
    val (nextImages, nextLabels) = window.next()
    images = Some(nextImages)
    labels = Some(nextLabels)
  }
}
