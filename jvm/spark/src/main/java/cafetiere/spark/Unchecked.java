// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

/** Lets checked exceptions pass through Scala's functions, which declare none. */
final class Unchecked {
  private Unchecked() {}

  /** Throws {@code e} as it is; {@code throw Unchecked.rethrow(e)} tells the compiler so. */
  @SuppressWarnings("unchecked")
  static <E extends Throwable> RuntimeException rethrow(Throwable e) throws E {
    throw (E) e;
  }
}
