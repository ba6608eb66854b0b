// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import cafetiere.spark.CafetierePlugin;
import cafetiere.spark.internal.SparkInternals;
import java.util.Optional;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;

/**
 * Hears of executors that end as they start, until it is closed. They may have registered before, so
 * that a job waits for them: the one with {@code tag} is cancelled.
 */
final class FailedStarts extends SparkListener implements AutoCloseable {
  private static final String PLUGIN = CafetierePlugin.class.getName();

  private final SparkContext sc;
  private final String tag;
  private volatile String reason;

  FailedStarts(SparkContext sc, String tag) {
    this.sc = sc;
    this.tag = tag;
    sc.addSparkListener(this);
  }

  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
    SparkInternals.failedStart(removed).ifPresent(why -> {
      reason = why;
      sc.cancelJobsWithTag(tag);
    });
  }

  boolean any() {
    return reason != null;
  }

  /** Why they end, and what to change. */
  Optional<String> finding() {
    if (reason == null) return Optional.empty();
    // Spark's words for a plug-in whose class is not there are no more than its name.
    if (!reason.contains(PLUGIN)) {
      return Optional.of(
          "executors end as they start (" + reason + "): correct what their logs say");
    }
    return Optional.of("executors end as they start, for lack of the class of spark.plugins=" + PLUGIN
        + ": add --jars cafetiere-spark.jar, and where executors do not fetch it before they start"
        + " --conf spark.executor.extraClassPath=FOLDER/cafetiere-spark.jar, a path that all of their"
        + " hosts have; or leave spark.plugins out, which is not needed");
  }

  @Override
  public void close() {
    sc.removeSparkListener(this);
  }
}
