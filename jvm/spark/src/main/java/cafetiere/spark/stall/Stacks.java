// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.stall;

/** What Java's threads of a rank are doing. */
final class Stacks {
  private static final int MOST_FRAMES = 20;
  private static final String OURS = "cafetiere";

  private final Thread rank;

  /** Of a rank in this thread. */
  Stacks(Thread rank) {
    this.rank = rank;
  }

  /** The rank's thread, then those of the product but the one that asks, innermost frames first. */
  String java() {
    StringBuilder text = new StringBuilder();
    add(text, rank);
    Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith(OURS))
        .filter(thread -> thread != rank && thread != Thread.currentThread())
        .forEach(thread -> add(text, thread));
    return text.toString();
  }

  private static void add(StringBuilder text, Thread thread) {
    text.append("  thread ").append(thread.getName()).append(' ').append(thread.getState())
        .append('\n');
    StackTraceElement[] frames = thread.getStackTrace();
    for (int i = 0; i < Math.min(frames.length, MOST_FRAMES); i++) {
      text.append("    ").append(frames[i]).append('\n');
    }
  }
}
