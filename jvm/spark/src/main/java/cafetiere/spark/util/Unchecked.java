// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

/** Lets checked exceptions pass through Scala's functions, which declare none. */
public final class Unchecked {
  private Unchecked() {}

  /** Throws {@code e} as it is; {@code throw Unchecked.rethrow(e)} tells the compiler so. */
  @SuppressWarnings("unchecked")
  public static <E extends Throwable> RuntimeException rethrow(Throwable e) throws E {
    throw (E) e;
  }
}
