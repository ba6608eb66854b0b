// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.net;

import cafetiere.core.Group;
import cafetiere.core.Handle;
import cafetiere.core.NativeLibrary;

/**
 * A solver that goes step by step over a {@link Net}: Caffe's Solver. A Trainer is for whole runs, many
 * ranks and full speed. Not for use by several threads at a time, neither itself nor its nets.
 */
public final class Solver extends Handle {
  /** Makes a solver; {@code options} is the JSON that cft_solver_create describes. */
  public Solver(String options) {
    this(options, null);
  }

  /** The same with somebody, unless null, who hears what the solver says and fills its inputs. */
  public Solver(String options, NetListener listener) {
    super(create(options, listener), NativeNet::destroy);
  }

  /** A solver of prototxt text, which holds its net or names its file. */
  public static Solver of(String prototxt, NetListener listener) {
    return new Solver(NativeNet.options("text", prototxt), listener);
  }

  /** Type, iteration, rate and more as JSON, as cft_solver_describe gives it. */
  public String describe() {
    return NativeNet.text(call(NativeNet::solverDescribe));
  }

  /** Iterations done. */
  public int iter() {
    return (int) number("iter");
  }

  /** Iterations that {@link #solve} goes to. */
  public int maxIter() {
    return (int) number("max_iter");
  }

  /** The rate of the last update. */
  public float rate() {
    return (float) number("lr");
  }

  /** The number of test nets. */
  public int testNets() {
    return (int) number("test_nets");
  }

  /** The net to train. It may be closed before or after the solver. */
  public Net net() {
    return net(-1);
  }

  /** A test net, which has the weights of the net to train. */
  public Net testNet(int number) {
    if (number < 0) {
      throw new IllegalArgumentException("test net " + number + ": the first has number 0");
    }
    return net(number);
  }

  private Net net(int number) {
    long handle = call(solver -> NativeNet.solverNet(solver, number));
    return new Net(handle);
  }

  /**
   * From now on each update takes the mean of the gradients of all ranks, as cft_solver_join says:
   * their weights stay the same to the bit. Every rank calls it with its connected end of a group, at
   * the same iteration, and then does the same steps.
   */
  public void join(Group group) {
    run(solver -> runWith(group, ranks -> NativeNet.solverJoin(solver, ranks)));
  }

  /** Does so many iterations, with the tests and snapshots that fall due. */
  public void step(int iterations) {
    run(solver -> NativeNet.solverStep(solver, iterations));
  }

  /** Goes on to max_iter, with the snapshot and test that the solver asks for at the end. */
  public void solve() {
    run(NativeNet::solverSolve);
  }

  /** Updates the weights by the gradients that are there, which ends an iteration. */
  public void applyUpdate() {
    run(NativeNet::solverApplyUpdate);
  }

  /** Replaces the solver's base_lr. */
  public void setBaseRate(float rate) {
    run(solver -> NativeNet.solverSetBaseRate(solver, rate));
  }

  /** Writes weights and state, as PREFIX_iter_N.caffemodel and .solverstate. */
  public void snapshot() {
    run(NativeNet::solverSnapshot);
  }

  /** Goes on from a .solverstate, of either form, and the weights that it names. */
  public void restore(String path) {
    run(solver -> NativeNet.solverRestore(solver, NativeNet.utf8(path)));
  }

  private double number(String name) {
    return call(solver -> NativeNet.solverNumber(solver, NativeNet.utf8(name)));
  }

  private static long create(String options, NetListener listener) {
    NativeLibrary.load();
    return NativeNet.solverCreate(NativeNet.utf8(options), listener);
  }
}
