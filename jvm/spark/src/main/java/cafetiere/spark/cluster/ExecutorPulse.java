// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cluster;

import cafetiere.spark.internal.SparkInternals;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerExecutorMetricsUpdate;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Judges which executors live, by Spark's heartbeats, and listens to the tasks of a tagged job. Spark
 * itself gives an executor that hangs {@code spark.network.timeout}, two minutes by default, and
 * until then its slots count as there. Where its peers or the driver have missed it, too, a missing
 * heartbeat is enough; without one it is left alone, as a long garbage collection or a lost
 * connection is no reason to lose the blocks that it keeps for others.
 */
public final class ExecutorPulse extends SparkListener implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorPulse.class);
  private static final String INTERVAL = "spark.executor.heartbeatInterval";

  /** By how much a heartbeat may be late, if half an interval is less: a busy machine's stalls. */
  private static final long LEAST_DELAY_MILLIS = 3_000;

  /** What a killed task may take in an executor that answers, and how long one may not answer. */
  private static final long END_SECONDS = 120;
  private static final long GRACE_SECONDS = 10;

  /** How long tasks may still tell what they saw, or end, before anybody asks for their executors. */
  public static final int GRACE_MILLIS = (int) TimeUnit.SECONDS.toMillis(GRACE_SECONDS);

  private final SparkContext sc;
  private final String tag;
  private final long timeoutNanos;
  private final long startNanos = System.nanoTime();
  private final Set<Integer> stages = new HashSet<>();
  private final Set<String> used = new HashSet<>();
  private final Set<String> removed = new HashSet<>();
  private final Map<String, Long> heard = new HashMap<>();
  private final Map<Long, String> running = new HashMap<>();
  private boolean closed;

  /** Listens from now on, before the jobs with the tag are submitted; "" if there are none. */
  public ExecutorPulse(SparkContext sc, String tag) {
    this.sc = sc;
    this.tag = tag;
    long interval = sc.getConf().getTimeAsMs(INTERVAL, "10s");
    long delay = Math.max(interval / 2, LEAST_DELAY_MILLIS);
    this.timeoutNanos = TimeUnit.MILLISECONDS.toNanos(interval + delay);
    sc.addSparkListener(this);
  }

  /**
   * Replaces those executors of the job that are {@link #silent}, but for those that have {@code
   * answered}: their tasks would never end and free a slot.
   */
  public void replaceSilent(Collection<String> answered) {
    replace(without(answered));
  }

  /** Replaces an executor if it is {@link #silent}, and tells whether it was. */
  boolean replaceIfSilent(String executor) {
    return replace(Set.of(executor));
  }

  /**
   * Replaces the executors that still run tasks of the job if all of them are {@link #silent}: no
   * living one works on something that would be lost with the job.
   */
  public void replaceLast() {
    Set<String> last = busy();
    try {
      if (silent(last).containsAll(last)) replace(last);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private boolean replace(Set<String> suspects) {
    try {
      Set<String> silent = silent(suspects);
      for (String executor : silent) {
        LOG.warn("Executor {} does not answer and sends no heartbeat: it is replaced", executor);
        SparkInternals.replaceExecutor(sc, executor);
      }
      return !silent.isEmpty();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /**
   * Waits for the tasks of jobs that are over. Spark ends a job that is cancelled before its tasks,
   * and one of them may still be storing a checkpoint. Executors that run them and do not send
   * heartbeats any more are replaced.
   */
  public void awaitTasks() {
    SparkInternals.awaitEvents(sc, TimeUnit.SECONDS.toMillis(GRACE_SECONDS));
    try {
      if (awaitTasks(GRACE_SECONDS)) return;
      replace(busy());
      if (awaitTasks(END_SECONDS)) return;
      LOG.warn("Tasks on executors {} were killed and have not ended in {} s; they may still write to"
          + " the folder of checkpoints", busy(), END_SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Whether no task runs any more, at the latest after so many seconds. */
  private synchronized boolean awaitTasks(long seconds) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    while (!running.isEmpty() && !closed && System.nanoTime() < end) {
      TimeUnit.NANOSECONDS.timedWait(this, end - System.nanoTime());
    }
    return running.isEmpty() || closed;
  }

  private synchronized Set<String> busy() {
    return new TreeSet<>(running.values());
  }

  private synchronized Set<String> without(Collection<String> answered) {
    Set<String> others = new HashSet<>(used);
    others.removeAll(answered);
    return others;
  }

  /**
   * Those of some executors that do not send heartbeats any more. Blocks until each of them has been
   * heard of after this call, has been removed by Spark or has missed a heartbeat: at most one and a
   * half intervals, or an interval and three seconds. None when closed meanwhile.
   */
  private synchronized Set<String> silent(Set<String> asked) throws InterruptedException {
    long begin = System.nanoTime();
    Set<String> suspects = new HashSet<>(asked);
    Set<String> silent = new HashSet<>();
    while (!suspects.isEmpty() && !closed) {
      long now = System.nanoTime();
      long wait = Long.MAX_VALUE;
      for (String executor : List.copyOf(suspects)) {
        long last = heard.getOrDefault(executor, startNanos);
        boolean settled = removed.contains(executor) || last > begin;
        long left = settled ? 0 : last + timeoutNanos - now;
        if (left <= 0) suspects.remove(executor);
        if (left <= 0 && !settled) silent.add(executor);
        wait = Math.min(wait, Math.max(left, 1));
      }
      if (!suspects.isEmpty()) TimeUnit.NANOSECONDS.timedWait(this, wait);
    }
    return closed ? Set.of() : silent;
  }

  @Override
  public synchronized void onStageSubmitted(SparkListenerStageSubmitted submitted) {
    if (SparkInternals.isTagged(submitted, tag)) stages.add(submitted.stageInfo().stageId());
  }

  @Override
  public synchronized void onTaskStart(SparkListenerTaskStart start) {
    heard.put(start.taskInfo().executorId(), System.nanoTime());
    if (stages.contains(start.stageId())) {
      used.add(start.taskInfo().executorId());
      running.put(start.taskInfo().taskId(), start.taskInfo().executorId());
    }
  }

  @Override
  public synchronized void onTaskEnd(SparkListenerTaskEnd end) {
    if (running.remove(end.taskInfo().taskId()) != null) notifyAll();
  }

  @Override
  public synchronized void onExecutorMetricsUpdate(SparkListenerExecutorMetricsUpdate update) {
    heard.put(update.execId(), System.nanoTime());
    notifyAll();
  }

  @Override
  public synchronized void onExecutorRemoved(SparkListenerExecutorRemoved event) {
    removed.add(event.executorId());
    running.values().removeIf(event.executorId()::equals);
    notifyAll();
  }

  @Override
  public synchronized void onApplicationEnd(SparkListenerApplicationEnd end) {
    closed = true;
    notifyAll();
  }

  @Override
  public synchronized void close() {
    closed = true;
    notifyAll();
    sc.removeSparkListener(this);
  }
}
