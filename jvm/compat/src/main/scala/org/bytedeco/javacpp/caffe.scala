// SPDX-License-Identifier: Apache-2.0
package org.bytedeco.javacpp

import scala.language.implicitConversions

import libs.ProtoLoader

/** What programs for SparkNet's second version use of JavaCPP's Caffe: prototxts that are read into nets and solvers.
  * `CaffeNet` and `CaffeSolver` take both as they are.
  */
object caffe {

  /** A net. */
  class NetParameter {
    private[javacpp] var message = _root_.caffe.Caffe.NetParameter.getDefaultInstance
  }

  object NetParameter {
    implicit def messageOf(net: NetParameter): _root_.caffe.Caffe.NetParameter = net.message
  }

  /** A solver. */
  class SolverParameter {
    private[javacpp] var message = _root_.caffe.Caffe.SolverParameter.getDefaultInstance

    /** Forgets the path of its net. */
    def clear_net(): Unit = message = message.toBuilder.clearNet().build()

    /** Puts a net into it. */
    def set_allocated_net_param(net: NetParameter): Unit =
      message = message.toBuilder.setNetParam(net.message).build()
  }

  object SolverParameter {
    implicit def messageOf(solver: SolverParameter): _root_.caffe.Caffe.SolverParameter = solver.message
  }

  /** Where Caffe computes. */
  object Caffe {
    val CPU = 0
    val GPU = 1

    /** Has no effect: this engine computes on processors. */
    def set_mode(mode: Int): Unit = ()
  }

  /** Reads a net from a local file.
    *
    * @throws IllegalArgumentException if the text has a fault; the program does not die
    */
  def ReadProtoFromTextFileOrDie(filename: String, net: NetParameter): Unit =
    net.message = ProtoLoader.loadNetPrototxt(filename)

  /** The same for a solver. */
  def ReadSolverParamsFromTextFileOrDie(filename: String, solver: SolverParameter): Unit =
    solver.message = ProtoLoader.loadSolverPrototxt(filename)
}
