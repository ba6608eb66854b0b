// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.stall;

import cafetiere.core.Engine;
import cafetiere.core.Trainer;
import cafetiere.spark.events.MetricsRoute;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Watches a rank from a thread of its own. When it has begun no step and done nothing else for a
 * time, its place and the stacks of its threads, Java's and native ones, are told to the driver and
 * to the executor's log; and again each time that the time has doubled. A report stops nothing.
 */
public final class StallWatch implements AutoCloseable {
  private static final String STALL_TIME = "spark.cafetiere.stallTime";
  private static final String DEFAULT = "120s";

  private static final Logger LOG = LoggerFactory.getLogger(StallWatch.class);
  private static final long MOST_MILLIS = 5_000;
  private static final long LOOKS = 10;

  private final CountDownLatch closed = new CountDownLatch(1);
  private final String who;
  private final long limitNanos;
  private final Supplier<JsonNode> place;
  private final Consumer<String> tell;
  private final Stacks stacks;

  /** How long a rank may stand still before that is told; 0: it never is. */
  public static long seconds(SparkSession spark) {
    return JavaUtils.timeStringAsSec(spark.conf().get(STALL_TIME, DEFAULT));
  }

  /** Watches the rank that the calling thread is about to train. */
  public static StallWatch of(int rank, long seconds, Trainer trainer,
      MetricsRoute.Address driver, int attempt) {
    return of("rank " + rank, seconds, () -> Json.parse(trainer.place()), driver, attempt);
  }

  /** Watches what the calling thread is about to do; {@code place} is as {@link Trainer#place} says it. */
  public static StallWatch of(String what, long seconds, Supplier<JsonNode> place,
      MetricsRoute.Address driver, int attempt) {
    String who = what + " on executor " + SparkInternals.executorId() + " ("
        + SparkInternals.executorHost() + ")";
    return new StallWatch(
        who, TimeUnit.SECONDS.toNanos(seconds), place, text -> send(text, driver, attempt));
  }

  /** {@code place} is what {@link Trainer#place} says. */
  StallWatch(String who, long limitNanos, Supplier<JsonNode> place, Consumer<String> tell) {
    this.who = who;
    this.limitNanos = limitNanos;
    this.place = place;
    this.tell = tell;
    this.stacks = new Stacks(Thread.currentThread());
    if (limitNanos <= 0) return;
    Thread thread = new Thread(this::watch, "cafetiere-stall");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void close() {
    closed.countDown();
  }

  private void watch() {
    long pause = Math.min(MOST_MILLIS, Math.max(1, limitNanos / 1_000_000 / LOOKS));
    JsonNode before = null;
    long since = System.nanoTime();
    long limit = limitNanos;
    try {
      while (!closed.await(pause, TimeUnit.MILLISECONDS)) {
        JsonNode now = place.get();
        if (!now.equals(before)) {
          before = now;
          since = System.nanoTime();
          limit = limitNanos;
        } else if (System.nanoTime() - since >= limit) {
          report(now, System.nanoTime() - since);
          limit *= 2;
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (RuntimeException e) {
      LOG.warn("The rank is not watched any longer", e);
    }
  }

  private void report(JsonNode at, long nanos) {
    String text = who + " stands still for " + TimeUnit.NANOSECONDS.toSeconds(nanos) + " s after step "
        + at.path("step").asLong() + ", " + text(at.path("doing").asText())
        + "\n Java:\n" + stacks.java() + " native:\n"
        + Engine.threadStacks(at.path("thread").asInt());
    LOG.warn("{}", text);
    tell.accept(text);
  }

  private static String text(String doing) {
    return switch (doing) {
      case "data" -> "waiting for rows";
      case "network" -> "waiting for other ranks";
      case "storing" -> "storing a checkpoint or the model";
      default -> doing;
    };
  }

  private static void send(String text, MetricsRoute.Address driver, int attempt) {
    try (MetricsRoute route = new MetricsRoute(driver, attempt)) {
      route.tell(Json.object().put("event", "log").put("level", "warning").put("text", text)
          .toString());
    }
  }
}
