// SPDX-License-Identifier: Apache-2.0
package libs

import cafetiere.core.net.{NetListener, Solver => EngineSolver}
import caffe.Caffe.{NetParameter, SolverParameter}

/** Solvers of the engine that do no more than they are told. */
private[libs] object SteppedSolver {

  /** Without the tests and snapshots that the solver would make on its own. */
  def apply(solverParam: SolverParameter, listener: NetListener): EngineSolver = {
    val own = solverParam.toBuilder
    own.clearNet.clearTrainNet.clearTrainNetParam.clearTestNet.clearTestNetParam
    own.clearTestIter.clearTestInterval.clearTestState.clearSnapshot
    own.setNetParam(netOf(solverParam)).setSnapshotAfterTrain(false)
    EngineSolver.of(own.build.toString, listener)
  }

  /** The net to train. */
  def netOf(solverParam: SolverParameter): NetParameter =
    if (solverParam.hasNetParam) solverParam.getNetParam
    else if (solverParam.hasTrainNetParam) solverParam.getTrainNetParam
    else if (solverParam.hasNet) ProtoLoader.loadNetPrototxt(solverParam.getNet)
    else if (solverParam.hasTrainNet) ProtoLoader.loadNetPrototxt(solverParam.getTrainNet)
    else throw new IllegalArgumentException("the solver has no net: set net or net_param")
}
