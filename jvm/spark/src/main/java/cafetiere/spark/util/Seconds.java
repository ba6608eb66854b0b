// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

/** Times in seconds. */
public final class Seconds {
  private Seconds() {}

  /** From {@code nanos}, which {@link System#nanoTime} told, until now. */
  public static double since(long nanos) {
    return (System.nanoTime() - nanos) / 1e9;
  }
}
