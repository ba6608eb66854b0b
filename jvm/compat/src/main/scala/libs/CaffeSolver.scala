// SPDX-License-Identifier: Apache-2.0
package libs

import org.apache.spark.sql.Row
import org.apache.spark.sql.types.StructType

import cafetiere.core.net.NetListener
import caffe.Caffe.SolverParameter

/** What trains on rows, step by step. */
trait Solver {

  /** Does one iteration on the next rows. */
  def step(rowIt: Iterator[Row]): Unit
}

/** A solver of any type over a net that reads rows of a DataFrame. Tests and snapshots are made when they
  * are asked for, whatever the solver says of their intervals. For one thread at a time.
  *
  * @param schema the DataFrame's
  */
class CaffeSolver(solverParam: SolverParameter, schema: StructType, preprocessor: Preprocessor)
    extends Solver {
  private var rows: Iterator[Row] = Iterator.empty
  private val stepped = SteppedSolver(
    solverParam,
    new NetListener { override def pass(): Unit = trainNet.fill(rows) })

  /** The net. What it gives by `forward` is of phase TEST, with the weights of now. */
  val trainNet: CaffeNet =
    new CaffeNet(SteppedSolver.netOf(solverParam), schema, preprocessor, stepped.net)

  /** Does one iteration on the next iter_size batches, the last of which may be smaller.
    *
    * @throws NoSuchElementException if the rows do not begin each of them
    */
  def step(rowIt: Iterator[Row]): Unit = {
    rows = rowIt
    stepped.step(1)
  }

  /** Iterations done. */
  def iter: Int = stepped.iter

  /** The learning rate of the last iteration. */
  def rate: Float = stepped.rate

  /** Writes weights and state, as snapshot_prefix says. */
  def snapshot(): Unit = stepped.snapshot()

  /** Goes on from a .solverstate and the weights that it names. */
  def restore(filename: String): Unit = stepped.restore(filename)
}
