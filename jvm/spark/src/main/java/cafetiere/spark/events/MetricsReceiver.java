// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.events;

import cafetiere.spark.cluster.DriverPorts;
import cafetiere.spark.events.MetricsRoute.Address;
import cafetiere.spark.internal.SparkInternals;
import java.io.IOException;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.AccumulableInfo;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorMetricsUpdate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The driver's ends of all routes by which a run's events can come, open as long as the run. */
public final class MetricsReceiver implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(MetricsReceiver.class);

  private final SparkContext sc;
  private final String run;
  private final EventAccumulator accumulator = new EventAccumulator();
  private final SparkListener heartbeats;
  private final MetricsServer server;
  private final Address address;

  public MetricsReceiver(SparkContext sc, String run, String secret, RunEvents events) {
    this.sc = sc;
    this.run = run;
    PluginRoute.listen(run, events::accept);
    sc.register(accumulator, "cafetiere events of run " + run);
    heartbeats = new HeartbeatListener(accumulator.id(), events);
    sc.addSparkListener(heartbeats);
    server = openServer(run, secret, events);
    int port = server == null ? 0 : server.port();
    address = new Address(run, secret, DriverPorts.host(sc.getConf()), port, accumulator);
  }

  /** What rank 0 needs to reach this driver. */
  public Address address() {
    return address;
  }

  @Override
  public void close() {
    PluginRoute.forget(run);
    sc.removeSparkListener(heartbeats);
    if (server != null) server.close();
  }

  private MetricsServer openServer(String run, String secret, RunEvents events) {
    try {
      return new MetricsServer(
          DriverPorts.listen(sc.getConf()), run, secret, events::accept);
    } catch (IOException e) {
      LOG.warn("The driver cannot listen for events ({}); they come with Spark's heartbeats",
          e.getMessage());
      return null;
    }
  }

  /** Takes the accumulator's values out of the executors' heartbeats. */
  private static final class HeartbeatListener extends SparkListener {
    private final long accumulator;
    private final RunEvents events;

    HeartbeatListener(long accumulator, RunEvents events) {
      this.accumulator = accumulator;
      this.events = events;
    }

    @Override
    public void onExecutorMetricsUpdate(SparkListenerExecutorMetricsUpdate update) {
      SparkInternals.accumulators(update).forEach(this::take);
    }

    private void take(AccumulableInfo info) {
      if (info.id() != accumulator || info.update().isEmpty()) return;
      if (info.update().get() instanceof List<?> values) {
        for (Object value : values) events.accept((RunEvent) value);
      }
    }
  }
}
