// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cluster;

import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationReport;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.QueueConfigurations;
import org.apache.hadoop.yarn.api.records.QueueInfo;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether YARN has room for the executors that it has not yet given. Its ResourceManager is asked twice
 * a second by a thread of its own; where it does not answer, nothing is known. Memory alone is looked
 * at, which is what every scheduler of YARN counts.
 */
public final class YarnQueue implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(YarnQueue.class);
  private static final long LOOK_MILLIS = 500;
  private static final int ANSWER_MILLIS = 3_000;
  private static final String LABEL = "spark.yarn.executor.nodeLabelExpression";

  /**
   * No room for another executor.
   *
   * @param executors that YARN has given
   * @param place the queue, or the cluster
   * @param used its MiB in use
   * @param most the MiB that can be
   */
  public record Full(int executors, String place, long used, long most) {}

  private final SparkContext sc;
  private final int wanted;
  private final long mib;
  private final String label;
  private final Thread thread = new Thread(this::watch, "cafetiere-yarn-queue");
  private volatile Full full;
  private volatile boolean closed;

  /**
   * Begins to look, if the application runs on YARN.
   *
   * @param executors as many are wanted
   * @param mib what each takes, at least
   */
  public YarnQueue(SparkContext sc, int executors, long mib) {
    this.sc = sc;
    this.wanted = executors;
    this.mib = mib;
    this.label = sc.getConf().get(LABEL, "");
    thread.setDaemon(true);
    if (sc.master().equals("yarn")) thread.start();
  }

  /** That executors are missing and there is no room for them, if that is known. */
  public Optional<Full> full() {
    return Optional.ofNullable(full);
  }

  @Override
  public void close() {
    closed = true;
    thread.interrupt();
  }

  private void watch() {
    YarnConfiguration conf = new YarnConfiguration(sc.hadoopConfiguration());
    conf.setLong(YarnConfiguration.RESOURCEMANAGER_CONNECT_MAX_WAIT_MS, ANSWER_MILLIS);
    conf.setLong(YarnConfiguration.RESOURCEMANAGER_CONNECT_RETRY_INTERVAL_MS, LOOK_MILLIS);
    conf.setBoolean(YarnConfiguration.TIMELINE_SERVICE_ENABLED, false); // not asked, and needs more jars
    try (YarnClient client = YarnClient.createYarnClient()) {
      client.init(conf);
      client.start();
      Optional<Full> before = Optional.empty();
      while (!closed) {
        // Twice: between two questions of one look YARN may have given another executor.
        Optional<Full> now = look(client);
        boolean stays = now.map(Full::executors).equals(before.map(Full::executors));
        full = stays ? now.orElse(null) : null;
        before = now;
        TimeUnit.MILLISECONDS.sleep(LOOK_MILLIS);
      }
    } catch (IOException | YarnException | RuntimeException | LinkageError e) {
      if (!closed) LOG.info("YARN does not tell what room there is: {}", e.getMessage());
    } catch (InterruptedException e) {
      // closed
    }
  }

  private Optional<Full> look(YarnClient client) throws IOException, YarnException {
    ApplicationReport report =
        client.getApplicationReport(ApplicationId.fromString(sc.applicationId()));
    // One container is the application master's.
    int given = report.getApplicationResourceUsageReport().getNumUsedContainers() - 1;
    if (given >= wanted) return Optional.empty();
    QueueInfo queue = client.getQueueInfo(report.getQueue());
    return inQueue(queue, given).or(() -> onNodes(client, queue, given));
  }

  /** Its statistics are those of nodes without a label. */
  private Optional<Full> inQueue(QueueInfo queue, int given) {
    long most = mostOf(queue);
    long used = used(queue);
    if (!label.isEmpty() || most == 0 || used + mib <= most) return Optional.empty();
    return Optional.of(new Full(given, "queue " + queue.getQueueName(), used, most));
  }

  /** What others have taken beyond their share, a queue that preempts gets back. */
  private Optional<Full> onNodes(YarnClient client, QueueInfo queue, int given) {
    boolean preempts = Boolean.FALSE.equals(queue.getPreemptionDisabled());
    if (preempts && used(queue) + mib <= guaranteed(queue)) return Optional.empty();
    try {
      List<NodeReport> nodes = client.getNodeReports(NodeState.RUNNING).stream()
          .filter(node -> label.isEmpty() ? node.getNodeLabels().isEmpty()
              : node.getNodeLabels().contains(label)).toList();
      if (nodes.stream().anyMatch(node -> total(node) - used(node) >= mib)) return Optional.empty();
      String place = label.isEmpty() ? "the cluster" : "the part of the cluster with label " + label;
      return Optional.of(new Full(given, place, nodes.stream().mapToLong(YarnQueue::used).sum(),
          nodes.stream().mapToLong(YarnQueue::total).sum()));
    } catch (IOException | YarnException e) {
      throw new IllegalStateException(e.getMessage(), e);
    }
  }

  /** 0 where the scheduler does not say. */
  private static long mostOf(QueueInfo queue) {
    QueueConfigurations shares = shares(queue);
    return shares == null || shares.getEffectiveMaxCapacity() == null ? 0
        : shares.getEffectiveMaxCapacity().getMemorySize();
  }

  private static long guaranteed(QueueInfo queue) {
    QueueConfigurations shares = shares(queue);
    return shares == null || shares.getEffectiveMinCapacity() == null ? 0
        : shares.getEffectiveMinCapacity().getMemorySize();
  }

  /** Those of nodes without a label; null where the scheduler has none. */
  private static QueueConfigurations shares(QueueInfo queue) {
    return queue.getQueueConfigurations() == null ? null : queue.getQueueConfigurations().get("");
  }

  private static long used(QueueInfo queue) {
    return queue.getQueueStatistics() == null ? 0 : queue.getQueueStatistics().getAllocatedMemoryMB();
  }

  private static long total(NodeReport node) {
    return node.getCapability().getMemorySize();
  }

  private static long used(NodeReport node) {
    return node.getUsed() == null ? 0 : node.getUsed().getMemorySize();
  }
}
