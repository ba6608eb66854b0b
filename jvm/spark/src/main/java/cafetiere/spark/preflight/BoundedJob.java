// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import cafetiere.spark.util.Unchecked;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A Spark job that nobody waits for when it takes too long. It is left to end by itself: cancelling
 * would fail what it shares with later jobs, such as the shuffle below a cached DataFrame.
 */
final class BoundedJob<T> {
  private static final Logger LOG = LoggerFactory.getLogger(BoundedJob.class);

  private final String tag;
  private final long seconds;
  private final long end;
  private final FutureTask<T> task;

  /** Starts the job in a thread of its own; it is waited for until so many seconds later. */
  BoundedJob(SparkContext sc, String tag, long seconds, Supplier<T> job) {
    this.tag = tag;
    this.seconds = seconds;
    this.end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    task = new FutureTask<>(() -> {
      sc.addJobTag(tag);
      return job.get();
    });
    Thread thread = new Thread(task, tag);
    thread.setDaemon(true);
    thread.start();
  }

  /** Its value; empty if it failed or did not end in time. */
  Optional<T> result() {
    try {
      return Optional.of(task.get(end - System.nanoTime(), TimeUnit.NANOSECONDS));
    } catch (TimeoutException | CancellationException e) {
      LOG.info("{} takes longer than {} s and is left out", tag, seconds);
    } catch (ExecutionException e) {
      LOG.warn("{} failed and is left out: {}", tag, e.getCause().getMessage());
    } catch (InterruptedException e) {
      throw Unchecked.rethrow(e);
    }
    return Optional.empty();
  }
}
