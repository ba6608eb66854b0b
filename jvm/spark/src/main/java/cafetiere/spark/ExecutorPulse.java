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
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorMetricsUpdate;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Listens to Spark's heartbeats of the executors that work for a tagged job. Spark itself gives an
 * executor that hangs {@code spark.network.timeout}, two minutes by default, and until then its
 * slots count as there. Where its peers have missed it, too, a missing heartbeat is enough.
 */
final class ExecutorPulse extends SparkListener implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorPulse.class);
  private static final String TAGS = "spark.job.tags";
  private static final String INTERVAL = "spark.executor.heartbeatInterval";

  private final SparkContext sc;
  private final String tag;
  private final long patienceNanos;
  private final Set<Integer> stages = new HashSet<>();
  private final Map<String, Long> heard = new HashMap<>();
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
    }
  }

  @Override
  public synchronized void onExecutorMetricsUpdate(SparkListenerExecutorMetricsUpdate update) {
    if (heard.replace(update.execId(), System.nanoTime()) != null) notifyAll();
  }

  @Override
  public synchronized void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
    heard.remove(removed.executorId());
    notifyAll();
  }

  @Override
  public synchronized void close() {
    closed = true;
    notifyAll();
    sc.removeSparkListener(this);
  }
}
