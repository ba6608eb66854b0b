// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.keyed;

import java.util.HashSet;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** Adds up the time of the tasks of jobs that this thread starts until it is closed. */
final class KeyedTimes extends SparkListener implements AutoCloseable {
  /** A local property of the thread that trains: Spark tells it with each stage. */
  private static final String PROPERTY = "spark.cafetiere.keys";
  private static final long CLOSE_SECONDS = 10;

  private final SparkContext sc;
  private final Runnable onTask;
  private final String id = UUID.randomUUID().toString();
  private final Set<Integer> stages = new HashSet<>();
  private final Set<String> executors = new HashSet<>();
  private final CountDownLatch heardAll = new CountDownLatch(1);
  private boolean isClosed;
  private OptionalLong firstStageNanos = OptionalLong.empty();
  private long taskMillis;
  private long networkMillis;
  private long lostMillis;

  /** What Spark's queue tells after all that came before it. It is in no event log. */
  private record Last(String id) implements SparkListenerEvent {
    @Override
    public boolean logEvent() {
      return false;
    }
  }

  /** {@code onTask} runs after each task; the driver's counts include it. */
  KeyedTimes(SparkContext sc, Runnable onTask) {
    this.sc = sc;
    this.onTask = onTask;
    sc.setLocalProperty(PROPERTY, id);
    sc.addSparkListener(this);
  }

  @Override
  public synchronized void onStageSubmitted(SparkListenerStageSubmitted stage) {
    Properties properties = stage.properties();
    if (properties == null || !id.equals(properties.getProperty(PROPERTY))) return;
    if (stages.isEmpty()) firstStageNanos = OptionalLong.of(System.nanoTime());
    stages.add(stage.stageInfo().stageId());
  }

  @Override
  public void onTaskEnd(SparkListenerTaskEnd task) {
    if (add(task)) onTask.run();
  }

  private synchronized boolean add(SparkListenerTaskEnd task) {
    if (!stages.contains(task.stageId())) return false;
    executors.add(task.taskInfo().executorId());
    TaskMetrics metrics = task.taskMetrics(); // null where the executor was lost
    if (metrics == null) return false;
    if (!task.taskInfo().successful()) {
      lostMillis += metrics.executorRunTime();
      return false;
    }
    taskMillis += metrics.executorRunTime();
    networkMillis += metrics.shuffleReadMetrics().fetchWaitTime();
    return true;
  }

  @Override
  public void onOtherEvent(SparkListenerEvent event) {
    if (event instanceof Last last && last.id().equals(id)) heardAll.countDown();
  }

  /** {@link System#nanoTime} when the first stage began; empty if none did. */
  synchronized OptionalLong firstStageNanos() {
    return firstStageNanos;
  }

  /** Seconds of the tasks that went well, whatever they did. */
  synchronized double taskSeconds() {
    return taskMillis / 1e3;
  }

  /** Seconds in which they waited for rows of other executors. */
  synchronized double networkSeconds() {
    return networkMillis / 1e3;
  }

  /** Seconds of the tasks that failed. */
  synchronized double lostSeconds() {
    return lostMillis / 1e3;
  }

  /** How many executors had a task. */
  synchronized int executors() {
    return executors.size();
  }

  /** Waits until Spark has told all there is. */
  @Override
  public void close() {
    if (isClosed) return;
    isClosed = true;
    sc.setLocalProperty(PROPERTY, null);
    sc.listenerBus().post(new Last(id));
    try {
      heardAll.await(CLOSE_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    sc.removeSparkListener(this);
  }
}
