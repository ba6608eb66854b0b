// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Notices executors that hang in a run whose tasks have no peers to miss them. Spark gives them {@code
 * spark.network.timeout}, two minutes by default, and the job waits. An executor that ends is
 * Spark's own affair: its connection is forgotten.
 */
final class PulseServer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(PulseServer.class);

  private final long patienceNanos;
  private final Consumer<String> onSilence;
  private final Set<Pulse> pulses = ConcurrentHashMap.newKeySet();
  private final LineServer server;
  private final LineServer.Address address;
  private final SilenceClock clock;

  /** Tells {@code onSilence} the id of each executor that was silent for so long, once. */
  PulseServer(SparkConf conf, String run, int timeoutMillis, Consumer<String> onSilence)
      throws IOException {
    this.patienceNanos = TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
    this.onSilence = onSilence;
    String name = "cafetiere-pulse-" + run;
    String secret = Handshake.newSecret();
    server = new LineServer(LineServer.bindAddress(conf), name, secret, this::serve);
    address = new LineServer.Address(LineServer.host(conf), server.port(), secret);
    clock = new SilenceClock(name, this::look, () -> pulses.forEach(Pulse::hear));
  }

  /** Has Spark replace the executors of the run that hang. */
  static PulseServer replacing(SparkContext sc, String run, int timeoutMillis) {
    try {
      return new PulseServer(sc.getConf(), run, timeoutMillis, executor -> {
        LOG.warn("Executor {} was silent for {} ms (peerTimeout): it is replaced", executor,
            timeoutMillis);
        SparkInternals.replaceExecutor(sc, executor);
      });
    } catch (IOException e) {
      throw new UncheckedIOException(
          "the driver cannot listen to its executors at spark.driver.bindAddress: "
              + e.getMessage(), e);
    }
  }

  /** What a {@link PulseSender} needs. */
  LineServer.Address address() {
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
      boolean silent = now - pulse.heardNanos > patienceNanos;
      if (silent && pulses.remove(pulse)) onSilence.accept(pulse.executor);
    }
  }

  /** When an executor was last heard of. */
  private static final class Pulse {
    private final String executor;
    private volatile long heardNanos = System.nanoTime();

    Pulse(String executor) {
      this.executor = executor;
    }

    void hear() {
      heardNanos = System.nanoTime();
    }
  }
}
