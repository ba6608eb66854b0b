// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobEnd;

/** Does something once when some more of Spark's jobs have ended. */
public final class AfterJobs extends SparkListener implements AutoCloseable {
  private final SparkContext sc;
  private final Runnable action;
  private final AtomicInteger left;
  private volatile boolean done;

  public AfterJobs(SparkContext sc, int jobs, Runnable action) {
    this.sc = sc;
    this.action = action;
    this.left = new AtomicInteger(jobs);
    sc.addSparkListener(this);
  }

  @Override
  public void onJobEnd(SparkListenerJobEnd end) {
    if (left.decrementAndGet() != 0) return;
    action.run();
    done = true;
  }

  public boolean done() {
    return done;
  }

  @Override
  public void close() {
    sc.removeSparkListener(this);
  }
}
