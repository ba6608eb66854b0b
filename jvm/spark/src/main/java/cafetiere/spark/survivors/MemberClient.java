// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.survivors;

import cafetiere.core.Group;
import cafetiere.spark.line.LineChannel;
import cafetiere.spark.line.LineServer;
import cafetiere.spark.line.SilenceClock;
import cafetiere.spark.survivors.MembershipMessage.Kind;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A task's end of the membership service. It tells the service that the task lives, hands the
 * service's orders to the thread that trains, and breaks its run off when another view is to come or
 * the driver is gone.
 */
final class MemberClient implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(MemberClient.class);
  private static final int MOST_EPOCHS = 1_000;  // a line has an end

  private final LineChannel channel;
  private final BlockingQueue<MembershipMessage> orders = new LinkedBlockingQueue<>();
  private final ScheduledExecutorService heart;
  private final Map<Long, Long> told = new HashMap<>();
  private volatile Supplier<Map<Long, Long>> counted = Map::of;
  private Runnable breakOff = () -> {};
  private long generation;
  private String lost;

  /** Joins as the task that holds {@code partition}. */
  MemberClient(LineServer.Address service, int partition) throws IOException {
    channel = service.connect();
    try {
      channel.write(MembershipMessage.join(partition).toLine());
    } catch (IOException e) {
      channel.close();
      throw e;
    }
    heart = Executors.newSingleThreadScheduledExecutor(task -> daemon("cafetiere-heart", task));
    heart.scheduleWithFixedDelay(
        this::beat, SilenceClock.BEAT_MILLIS, SilenceClock.BEAT_MILLIS, TimeUnit.MILLISECONDS);
    daemon("cafetiere-member", this::read).start();
  }

  /**
   * From now on tells the service what {@code rows} says, by epoch, where it has changed: only so
   * are the rows known that a task used which is lost.
   */
  void count(Supplier<Map<Long, Long>> rows) {
    counted = rows;
  }

  /** Tells the service something; a driver that is gone is noticed by next(). */
  void send(MembershipMessage message) {
    try {
      channel.write(message.toLine());
    } catch (IOException e) {
      LOG.debug("the driver is not reached", e);
    }
  }

  /** The next thing to do: PROPOSE, COMMIT, STORE or END. Throws when the driver is gone. */
  MembershipMessage next() throws IOException, InterruptedException {
    MembershipMessage order = orders.take();
    if (order.kind() == Kind.BROKEN) {
      orders.add(order);
      throw new IOException("the driver has given up this task or cannot be reached: "
          + order.text());
    }
    return order;
  }

  /** Opens the view of {@code generation}, whose run {@link Group#cancel} breaks off. */
  synchronized void agree(long generation, Group group) {
    this.generation = generation;
    breakOff = group::cancel;
    if (lost != null) breakOff.run();
    send(MembershipMessage.of(Kind.AGREE, generation, group.address()));
  }

  /** Tells how the run in the newest view ended. */
  void ranTo(Kind kind, String message) {
    tellRows();
    send(MembershipMessage.of(kind, generation, message));
  }

  @Override
  public void close() {
    heart.shutdownNow();
    try {
      channel.close();
    } catch (IOException e) {
      LOG.debug("closing the connection to the driver", e);
    }
  }

  private void beat() {
    tellRows();
    send(MembershipMessage.of(Kind.ALIVE));
  }

  private void tellRows() {
    synchronized (told) {
      Map<Long, Long> news = new HashMap<>();
      counted.get().forEach((epoch, rows) -> {
        if (rows.equals(told.put(epoch, rows))) return;
        news.put(epoch, rows);
        if (news.size() < MOST_EPOCHS) return;
        send(MembershipMessage.rows(news));
        news.clear();
      });
      if (!news.isEmpty()) send(MembershipMessage.rows(news));
    }
  }

  private void read() {
    String why = "the connection has ended";
    try {
      for (String line = channel.read(); line != null; line = channel.read()) {
        MembershipMessage order = MembershipMessage.fromLine(line);
        if (order.kind() == Kind.REFORM) {
          reform(order.generation());
        } else {
          orders.add(order);
        }
      }
    } catch (IOException e) {
      why = e.getMessage();
    }
    end(why);
  }

  private synchronized void reform(long of) {
    if (of == generation) breakOff.run();
  }

  private synchronized void end(String why) {
    lost = why;
    breakOff.run();
    orders.add(MembershipMessage.of(Kind.BROKEN, generation, why));
  }

  private static Thread daemon(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    return thread;
  }
}
