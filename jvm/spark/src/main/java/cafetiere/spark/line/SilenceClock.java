// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.line;

import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has the driver look several times a second who is silent. When the driver itself was paused, what
 * the others have sent waits unread: that silence was not theirs and has to be excused.
 */
public final class SilenceClock implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SilenceClock.class);
  private static final int TICK_MILLIS = 200;
  private static final long LATE_NANOS = TimeUnit.SECONDS.toNanos(1);

  /** How often the others say that they are there. */
  public static final int BEAT_MILLIS = 500;

  private final ScheduledExecutorService clock;
  private long lastNanos = System.nanoTime();

  /** Calls {@code look} from now on, and {@code excuse} instead when that is late. */
  public SilenceClock(String name, Runnable look, Runnable excuse) {
    clock = Executors.newSingleThreadScheduledExecutor(task -> {
      Thread thread = new Thread(task, name + "-clock");
      thread.setDaemon(true);
      return thread;
    });
    clock.scheduleWithFixedDelay(
        () -> tick(look, excuse), TICK_MILLIS, TICK_MILLIS, TimeUnit.MILLISECONDS);
  }

  @Override
  public void close() {
    clock.shutdownNow();
  }

  private void tick(Runnable look, Runnable excuse) {
    boolean late = System.nanoTime() - lastNanos > LATE_NANOS;
    try {
      (late ? excuse : look).run();
    } catch (RuntimeException e) {
      LOG.warn("What follows from a silence was not done", e);  // an exception would end the clock
    }
    lastNanos = System.nanoTime();
  }
}
