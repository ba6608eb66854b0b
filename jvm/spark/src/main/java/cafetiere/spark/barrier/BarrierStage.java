// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.barrier;

import cafetiere.spark.cluster.ExecutorPulse;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.run.Attempts;
import cafetiere.spark.run.RankWork;
import cafetiere.spark.run.TaskOutcome;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/**
 * Runs one barrier stage and keeps what each task handed back, also where the stage fails as a
 * whole: the rank that knows the reason of a failure has often ended well from Spark's point of
 * view. A rank that gave up leaves others waiting for it, so its outcome ends the stage: at once if
 * it tells what the user has to change, else when the others had some seconds to tell what they saw
 * (Spark may take minutes to miss a machine that does not answer). An executor of which nothing is
 * heard by then is replaced; so is one that is left when the others' ranks have ended well without
 * it, as those of a mode do in which nobody waits for the slowest.
 */
final class BarrierStage implements Attempts.Stage {
  private final SparkContext sc;
  private final String tag;
  private final RDD<String> tasks;
  private final List<TaskOutcome> outcomes = new ArrayList<>();
  private boolean cancelled;

  /** {@code work} is done for each partition of {@code rows}, all at once. */
  BarrierStage(SparkContext sc, String tag, JavaRDD<java.util.Iterator<InternalRow>> rows,
      RankWork work) {
    this.sc = sc;
    this.tag = tag;
    this.tasks = rows.rdd().barrier().mapPartitions(work, false, RankWork.STRING);
  }

  @Override
  public void run() {
    ScheduledExecutorService timer = Executors.newScheduledThreadPool(2, task -> {
      Thread thread = new Thread(task, "cafetiere-grace");
      thread.setDaemon(true);
      return thread;
    });
    sc.addJobTag(tag);
    try (ExecutorPulse pulse = new ExecutorPulse(sc, tag)) {
      try {
        sc.runJob(tasks, new TakeOutcome(), new Collect(timer, pulse), RankWork.STRING);
      } catch (Throwable failure) {
        SparkInternals.cancelJobs(sc, tag);
        if (wasCancelled()) replaceSilent(pulse);
        pulse.awaitTasks();
        throw failure;
      }
    } finally {
      sc.removeJobTag(tag);
      timer.shutdownNow();
    }
  }

  @Override
  public synchronized List<TaskOutcome> outcomes() {
    return new ArrayList<>(outcomes);
  }

  @Override
  public synchronized boolean wasCancelled() {
    return cancelled;
  }

  /** Executors whose ranks gave no answer and that Spark does not hear of would never free a slot. */
  private void replaceSilent(ExecutorPulse pulse) {
    List<TaskOutcome> told = outcomes();
    if (told.stream().anyMatch(TaskOutcome::isPermanent)) return;
    pulse.replaceSilent(told.stream().map(TaskOutcome::executor).toList());
  }

  private synchronized void cancel() {
    cancelled = true;
    SparkInternals.cancelJobs(sc, tag);
  }

  private synchronized void add(TaskOutcome outcome, ScheduledExecutorService timer,
      ExecutorPulse pulse) {
    outcomes.add(outcome);
    if (timer.isShutdown()) return;
    if (!outcome.isGood()) {
      int delay = outcome.isPermanent() ? 0 : ExecutorPulse.GRACE_MILLIS;
      timer.schedule(this::cancel, delay, TimeUnit.MILLISECONDS);
    } else if (outcomes.size() == 1) {
      timer.scheduleWithFixedDelay(
          pulse::replaceLast, ExecutorPulse.GRACE_MILLIS, ExecutorPulse.GRACE_MILLIS,
          TimeUnit.MILLISECONDS);
    }
  }

  private static final class TakeOutcome extends AbstractFunction1<Iterator<String>, String>
      implements Serializable {
    private static final long serialVersionUID = 1L;

    @Override
    public String apply(Iterator<String> outcome) {
      return outcome.next();
    }
  }

  private final class Collect extends AbstractFunction2<Object, String, BoxedUnit> {
    private final ScheduledExecutorService timer;
    private final ExecutorPulse pulse;

    Collect(ScheduledExecutorService timer, ExecutorPulse pulse) {
      this.timer = timer;
      this.pulse = pulse;
    }

    @Override
    public BoxedUnit apply(Object partition, String outcome) {
      add(TaskOutcome.fromJson(outcome), timer, pulse);
      return BoxedUnit.UNIT;
    }
  }
}
