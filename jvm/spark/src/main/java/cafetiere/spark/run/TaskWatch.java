// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import cafetiere.spark.internal.SparkInternals;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.spark.TaskContext;

/**
 * Watches for the task being killed. Spark only raises a flag, which a thread inside the engine does
 * not see: it would hold the slot for as long as the call takes, and the next attempt could not get
 * its slots. Where the driver's own process runs tasks, they also end with the application, for which
 * Spark raises no flag. Stops watching when closed.
 */
public final class TaskWatch implements AutoCloseable {
  private static final int POLL_MILLIS = 100;

  private final CountDownLatch done = new CountDownLatch(1);

  /**
   * Calls {@code cancel}, once and from another thread, when the task is killed or its application has
   * ended.
   */
  public TaskWatch(TaskContext context, Runnable cancel) {
    BooleanSupplier application = SparkInternals.application();
    Thread thread = new Thread(() -> watch(context, application, cancel), "cafetiere-watch");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void close() {
    done.countDown();
  }

  private void watch(TaskContext context, BooleanSupplier application, Runnable cancel) {
    try {
      while (!done.await(POLL_MILLIS, TimeUnit.MILLISECONDS)) {
        if (context.isInterrupted() || !application.getAsBoolean()) {
          cancel.run();
          return;
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
