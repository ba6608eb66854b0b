// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.events;

import cafetiere.spark.line.LineChannel;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.Serializable;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.api.plugin.PluginContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Rank 0's way to the driver. Events are numbered; the last of them also travel with the task's
 * result, so that what a route loses at the end still arrives. Nothing here can stop or slow the
 * training: a route that does not work is left for the next one, and a full queue drops events.
 */
public final class MetricsRoute implements AutoCloseable {
  /** Where the driver listens; port 0: it does not. */
  public record Address(String run, String secret, String host, int port, EventAccumulator accumulator)
      implements Serializable {
    public InetSocketAddress driver() {
      return new InetSocketAddress(host, Math.max(1, port));
    }
  }

  private interface Sender extends AutoCloseable {
    void send(RunEvent event) throws IOException;

    @Override
    default void close() {}
  }

  private static final Logger LOG = LoggerFactory.getLogger(MetricsRoute.class);

  private static final String SOCKET = "a socket to the driver";
  private static final int VIEW_BITS = 32;

  private final Address address;
  private final int attempt;
  private final ArrayDeque<RunEvent> last = new ArrayDeque<>();
  private Sender sender;
  private String name;
  private long sequence;

  /** Opens the best route there is: Spark's plugin, the driver's socket, accumulators. */
  public MetricsRoute(Address address, int attempt) {
    this.address = address;
    this.attempt = attempt;
    PluginContext plugin = PluginRoute.executorContext();
    if (plugin != null) {
      use("Spark's plugin connection", plugin::send);
    } else {
      name = SOCKET;
      try {
        use(SOCKET, new SocketSender(address));
      } catch (IOException e) {
        useAccumulator(e);
      }
    }
    LOG.info("Events travel by {}", name);
  }

  /** "Spark's plugin connection", "a socket to the driver" or "accumulators". */
  public String name() {
    return name;
  }

  /** Numbers the events to come above those that rank 0 of an earlier view has sent. */
  public synchronized void startView(long generation) {
    sequence = Math.max(sequence, generation << VIEW_BITS);
  }

  /** Sends one event of the engine. */
  public synchronized void send(String json) {
    RunEvent event = new RunEvent(address.run(), attempt, ++sequence, json);
    if (last.size() == EventAccumulator.KEPT) last.removeFirst();
    last.addLast(event);
    pass(event, last);
  }

  /** Sends an event of a rank that is not the first, once; it has no place among the numbered ones. */
  public synchronized void tell(String json) {
    RunEvent event = new RunEvent(address.run(), attempt, RunEvent.UNNUMBERED, json);
    pass(event, List.of(event));
  }

  /** Sends an event; if its route no longer works, all of {@code again} go by the next one. */
  private void pass(RunEvent event, Collection<RunEvent> again) {
    try {
      sender.send(event);
    } catch (IOException e) {
      sender.close();
      useAccumulator(e);
      again.forEach(address.accumulator()::add);
    }
  }

  /** The newest events, for the task's result. */
  public synchronized ArrayList<RunEvent> last() {
    return new ArrayList<>(last);
  }

  @Override
  public synchronized void close() {
    sender.close();
  }

  private void use(String way, Sender by) {
    name = way;
    sender = by;
  }

  private void useAccumulator(IOException why) {
    LOG.warn("Events cannot travel by {} ({}): they travel by accumulators", name, why.getMessage());
    use("accumulators", address.accumulator()::add);
  }

  /** Writes from its own thread, so that a slow driver does not hold up the training. */
  private static final class SocketSender implements Sender {
    private static final int QUEUED = 1_024;
    private static final int FLUSH_MILLIS = 2_000;

    private final LineChannel channel;
    private final BlockingQueue<String> queue = new ArrayBlockingQueue<>(QUEUED);
    private final Thread writer;
    private boolean hasWarned;
    private volatile boolean closing;
    private volatile IOException failure;

    SocketSender(Address address) throws IOException {
      if (address.port() == 0) throw new IOException("the driver does not listen");
      channel = LineChannel.connect(address.host(), address.port(), address.secret());
      writer = new Thread(this::drain, "cafetiere-metrics");
      writer.setDaemon(true);
      writer.start();
    }

    @Override
    public void send(RunEvent event) throws IOException {
      if (failure != null) throw failure;
      String line = line(event, event.json());
      if (line.length() >= LineChannel.MAX_LINE) line = line(event, withoutRanks(event.json()));
      if (line.length() < LineChannel.MAX_LINE) queue.offer(line);
    }

    private static String line(RunEvent event, String json) {
      return event.attempt() + " " + event.sequence() + " " + json;
    }

    /** The event of a training of so many ranks that the times of each are too long for a line. */
    private String withoutRanks(String json) {
      ObjectNode event = (ObjectNode) Json.parse(json);
      if (event.remove("ranks") != null && !hasWarned) {
        hasWarned = true;
        LOG.warn("An event of {} characters is longer than a line to the driver ({}): what it tells of each"
            + " rank is left out", json.length(), LineChannel.MAX_LINE);
      }
      return event.toString();
    }

    @Override
    public void close() {
      closing = true;
      try {
        writer.join(FLUSH_MILLIS);
        channel.close();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      } catch (IOException e) {
        LOG.debug("closing the event socket", e);
      }
    }

    private void drain() {
      try {
        while (!closing || !queue.isEmpty()) {
          String line = queue.poll(50, TimeUnit.MILLISECONDS);
          if (line != null) channel.write(line);
        }
      } catch (IOException e) {
        failure = e;
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
