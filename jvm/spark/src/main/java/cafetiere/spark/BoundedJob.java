// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

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
final class BoundedJob {
  private static final Logger LOG = LoggerFactory.getLogger(BoundedJob.class);
  private static final long SECONDS = 3;

  private BoundedJob() {}

  /** The job's value; empty if it failed or did not end in time. */
  static <T> Optional<T> run(SparkContext sc, String tag, Supplier<T> job) {
    FutureTask<T> task = new FutureTask<>(() -> {
      sc.addJobTag(tag);
      return job.get();
    });
    Thread thread = new Thread(task, tag);
    thread.setDaemon(true);
    thread.start();
    try {
      return Optional.of(task.get(SECONDS, TimeUnit.SECONDS));
    } catch (TimeoutException | CancellationException e) {
      LOG.info("{} takes longer than {} s and is left out", tag, SECONDS);
    } catch (ExecutionException e) {
      LOG.warn("{} failed and is left out: {}", tag, e.getCause().getMessage());
    } catch (InterruptedException e) {
      throw Unchecked.rethrow(e);
    }
    return Optional.empty();
  }
}
