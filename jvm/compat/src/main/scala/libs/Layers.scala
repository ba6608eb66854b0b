// SPDX-License-Identifier: Apache-2.0
package libs

import java.util.Arrays.asList

import cafetiere.dsl
import cafetiere.dsl.NetStateRule
import caffe.Caffe.{LayerParameter, NetParameter}

/** In which phase a layer is there. */
object Include extends Enumeration {
  type Include = Value
  val Train, Test = Value
}

/** How a window is pooled. */
object Pooling extends Enumeration {
  type Pooling = Value
  val Max, Ave = Value
}

/** The layer that rows are fed to: one of type Input, with one top that has its name. SparkNet's own
  * type, JavaData, was known to its build of Caffe alone.
  */
object RDDLayer {

  /** @param shape the top's, the batch size first
    * @param include the phase in which the layer is there; None: both
    */
  def apply(name: String, shape: List[Long], include: Option[Include.Include]): LayerParameter =
    dsl.Input(
      name,
      shape = Seq(dsl.BlobShape(shape)),
      include = include.toList.map {
        case Include.Train => NetStateRule(phase = dsl.Phase.Train)
        case Include.Test => NetStateRule(phase = dsl.Phase.Test)
      })
}

object ConvolutionLayer {

  /** @param kernel height and width of the window, which moves by 1
    * @param numOutput channels of the top
    */
  def apply(
      name: String,
      bottom: List[String],
      kernel: (Int, Int),
      numOutput: Int): LayerParameter =
    dsl.Convolution(name, bottom, kernelH = kernel._1, kernelW = kernel._2, numOutput = numOutput)
}

object PoolingLayer {

  /** @param kernel height and width of the window
    * @param stride by how much it moves, down and to the right
    */
  def apply(
      name: String,
      bottom: List[String],
      pooling: Pooling.Pooling,
      kernel: (Int, Int),
      stride: (Int, Int)): LayerParameter =
    dsl.Pooling(
      name,
      bottom,
      pool = pooling match {
        case Pooling.Max => dsl.Pooling.PoolMethod.Max
        case Pooling.Ave => dsl.Pooling.PoolMethod.Ave
      },
      kernelH = kernel._1,
      kernelW = kernel._2,
      strideH = stride._1,
      strideW = stride._2)
}

object InnerProductLayer {

  /** @param numOutput values of the top, for each row */
  def apply(name: String, bottom: List[String], numOutput: Int): LayerParameter =
    dsl.InnerProduct(name, bottom, numOutput = numOutput)
}

object ReLULayer {

  /** max(x, 0), into a top of its own. */
  def apply(name: String, bottom: List[String]): LayerParameter = dsl.ReLU(name, bottom)
}

object SoftmaxWithLoss {

  /** @param bottom the scores and the labels */
  def apply(name: String, bottom: List[String]): LayerParameter = dsl.SoftmaxWithLoss(name, bottom)
}

object NetParam {

  /** A net of these layers; those of cafetiere.dsl fit too. */
  def apply(name: String, layers: LayerParameter*): NetParameter =
    NetParameter.newBuilder().setName(name).addAllLayer(asList(layers: _*)).build()
}
