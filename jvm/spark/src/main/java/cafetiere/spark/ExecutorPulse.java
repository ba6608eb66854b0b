// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
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
 * Listens to the tasks of a tagged job and to Spark's heartbeats of the executors that run them.
 * Spark itself gives an executor that hangs {@code spark.network.timeout}, two minutes by default,
 * and until then its slots count as there. Where its peers have missed it, too, a missing heartbeat
 * is enough.
 */
final class ExecutorPulse extends SparkListener implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorPulse.class);
  private static final String TAGS = "spark.job.tags";
  private static final String INTERVAL = "spark.executor.heartbeatInterval";

  /** What a killed task may take in an executor that answers, and how long one may not answer. */
  private static final long END_SECONDS = 120;
  private static final long GRACE_SECONDS = 10;

  private final SparkContext sc;
  private final String tag;
  private final long patienceNanos;
  private final Set<Integer> stages = new HashSet<>();
  private final Map<String, Long> heard = new HashMap<>();
  private final Map<Long, String> running = new HashMap<>();
  private boolean closed;

  /** Listens from now on; to be made before the job is submitted. */
  ExecutorPulse(SparkContext sc, String tag) {
    this.sc = sc;
    this.tag = tag;
    long interval = sc.getConf().getTimeAsMs(INTERVAL, "10s");
    this.patienceNanos = TimeUnit.MILLISECONDS.toNanos(interval + interval / 2);
    sc.addSparkListener(this);
  }

  /**
   * Replaces the executors that are {@link #silent}: their tasks would never end and free a slot.
   */
  void replaceSilent(Collection<String> answered) {
    try {
      for (String executor : silent(answered)) {
        LOG.warn("Executor {} has been lost by its peers and sends no heartbeat: it is replaced",
            executor);
        SparkInternals.replaceExecutor(sc, executor);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Waits for the tasks of jobs that are over. Spark ends a job that is cancelled before its tasks,
   * and one of them may still be storing a checkpoint. Executors that run them and do not send
   * heartbeats any more are replaced.
   */
  void awaitTasks() {
    SparkInternals.awaitEvents(sc, TimeUnit.SECONDS.toMillis(GRACE_SECONDS));
    try {
      if (awaitTasks(GRACE_SECONDS)) return;
      replaceSilent(idle());
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

  private synchronized Set<String> idle() {
    Set<String> idle = new HashSet<>(heard.keySet());
    idle.removeAll(running.values());
    return idle;
  }

  /**
   * The job's executors, without those that have {@code answered}, that do not send heartbeats any
   * more. Blocks until each of them has been heard of after this call, has been removed by Spark or
   * has missed a heartbeat: at most one and a half intervals. None when closed meanwhile.
   */
  private synchronized Set<String> silent(Collection<String> answered) throws InterruptedException {
    long asked = System.nanoTime();
    Set<String> doubted = new HashSet<>(heard.keySet());
    doubted.removeAll(answered);
    Set<String> silent = new HashSet<>();
    while (!doubted.isEmpty() && !closed) {
      long now = System.nanoTime();
      long wait = Long.MAX_VALUE;
      for (String executor : List.copyOf(doubted)) {
        Long last = heard.get(executor);
        long left = last == null || last > asked ? 0 : last + patienceNanos - now;
        if (left <= 0) doubted.remove(executor);
        if (left <= 0 && last != null && last <= asked) silent.add(executor);
        wait = Math.min(wait, Math.max(left, 1));
      }
      if (!doubted.isEmpty()) TimeUnit.NANOSECONDS.timedWait(this, wait);
    }
    return closed ? Set.of() : silent;
  }

  @Override
  public synchronized void onStageSubmitted(SparkListenerStageSubmitted submitted) {
    Properties properties = submitted.properties();
    String tags = properties == null ? "" : properties.getProperty(TAGS, "");
    if (Arrays.asList(tags.split(",")).contains(tag)) {
      stages.add(submitted.stageInfo().stageId());
    }
  }

  @Override
  public synchronized void onTaskStart(SparkListenerTaskStart start) {
    if (stages.contains(start.stageId())) {
      heard.put(start.taskInfo().executorId(), System.nanoTime());
      running.put(start.taskInfo().taskId(), start.taskInfo().executorId());
    }
  }

  @Override
  public synchronized void onTaskEnd(SparkListenerTaskEnd end) {
    if (running.remove(end.taskInfo().taskId()) != null) notifyAll();
  }

  @Override
  public synchronized void onExecutorMetricsUpdate(SparkListenerExecutorMetricsUpdate update) {
    if (heard.replace(update.execId(), System.nanoTime()) != null) notifyAll();
  }

  @Override
  public synchronized void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
    heard.remove(removed.executorId());
    running.values().removeIf(removed.executorId()::equals);
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
