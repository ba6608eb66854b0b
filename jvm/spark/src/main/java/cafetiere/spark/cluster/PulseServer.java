// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cluster;

import cafetiere.spark.line.Handshake;
import cafetiere.spark.line.LineChannel;
import cafetiere.spark.line.LineServer;
import cafetiere.spark.line.SilenceClock;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Notices executors that may hang in a run whose tasks have no peers to miss them. Spark gives them
 * {@code spark.network.timeout}, two minutes by default, and the job waits. An executor that ends is
 * Spark's own affair: its connection is forgotten.
 */
public final class PulseServer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(PulseServer.class);

  private final long timeoutNanos;
  private final Predicate<String> isGone;
  private final Set<Pulse> pulses = ConcurrentHashMap.newKeySet();
  private final LineServer server;
  private final LineServer.Address address;
  private final SilenceClock clock;

  /**
   * Asks {@code isGone}, in a thread of its own, about each executor that was silent for so long: true
   * if it is gone, false if it lives, and then it is listened to again.
   */
  PulseServer(SparkConf conf, String run, int timeoutMillis, Predicate<String> isGone)
      throws IOException {
    this.timeoutNanos = TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
    this.isGone = isGone;
    String name = "cafetiere-pulse-" + run;
    String secret = Handshake.newSecret();
    server = new LineServer(DriverPorts.listen(conf), name, secret, this::serve);
    address = new LineServer.Address(DriverPorts.host(conf), server.port(), secret);
    clock = new SilenceClock(name, this::look, () -> pulses.forEach(Pulse::hear));
  }

  /** Has Spark replace the executors of the run of which {@code pulse} does not hear, either. */
  public static PulseServer replacing(SparkContext sc, ExecutorPulse pulse, String run,
      int timeoutMillis) {
    try {
      return new PulseServer(sc.getConf(), run, timeoutMillis, executor -> {
        LOG.info("Executor {} was silent for {} ms (peerTimeout)", executor, timeoutMillis);
        return pulse.replaceIfSilent(executor);
      });
    } catch (IOException e) {
      throw new UncheckedIOException(
          "the driver cannot listen to its executors at spark.driver.bindAddress: "
              + e.getMessage(), e);
    }
  }

  /** What a {@link PulseSender} needs. */
  public LineServer.Address address() {
    return address;
  }

  @Override
  public void close() {
    clock.close();
    server.close();
  }

  private void serve(LineChannel channel) throws IOException {
    Pulse pulse = new Pulse(channel.read());
    pulses.add(pulse);
    try {
      while (channel.read() != null) pulse.hear();
    } finally {
      pulses.remove(pulse);
    }
  }

  private void look() {
    long now = System.nanoTime();
    for (Pulse pulse : pulses) {
      if (pulse.isSuspect || now - pulse.heardNanos <= timeoutNanos) continue;
      pulse.isSuspect = true;
      Thread thread = new Thread(() -> ask(pulse), "cafetiere-suspect-" + pulse.executor);
      thread.setDaemon(true);
      thread.start();
    }
  }

  private void ask(Pulse pulse) {
    if (isGone.test(pulse.executor)) return;
    pulse.hear();
    pulse.isSuspect = false;
  }

  /** When an executor was last heard of. */
  private static final class Pulse {
    private final String executor;
    private volatile long heardNanos = System.nanoTime();
    private volatile boolean isSuspect;

    Pulse(String executor) {
      this.executor = executor;
    }

    void hear() {
      heardNanos = System.nanoTime();
    }
  }
}
