// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.net;

/**
 * Hears a net or solver while one of its functions runs, on the thread that called it. What a method
 * throws ends that function, which throws it on.
 */
public interface NetListener {
  /** A line of the log, as Caffe's tool prints it; level: 0 info, 1 warning, 2 error. */
  default void message(int level, String text) {}

  /**
   * A solver's training net runs next: the place to fill its inputs. Called iter_size times an
   * iteration.
   */
  default void pass() {}

  /** An iteration's gradients are there; the update follows. */
  default void gradients() {}
}
