// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

/**
 * Decides whether a failed attempt is followed by another. There is no limit on the number of
 * attempts as long as the checkpoint advances: a run of a week may lose many executors. What fails
 * twice at the same step with the same words is a fault of the job, and three failures in a row
 * without any progress end the run whatever their words are.
 */
public final class RetryPolicy {
  private static final int STALLED_ATTEMPTS = 3;

  private long lastStep = -1;
  private String lastMessage = "";
  private int stalled;

  /** Records a failure after which the newest good checkpoint is {@code step}; true: try again. */
  public boolean retryAfter(long step, String message) {
    boolean advanced = step > lastStep;
    boolean repeated = !advanced && message.equals(lastMessage);
    stalled = advanced ? 1 : stalled + 1;
    lastStep = Math.max(step, lastStep);
    lastMessage = message;
    return !repeated && stalled < STALLED_ATTEMPTS;
  }
}
