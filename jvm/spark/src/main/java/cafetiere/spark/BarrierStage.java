package cafetiere.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import scala.collection.Iterator;
import scala.collection.Iterator$;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/**
 * Runs one barrier stage and keeps what each task handed back, also where the stage fails as a
 * whole: the rank that knows the reason of a failure has often ended well from Spark's point of
 * view. A rank that gave up leaves others waiting for it, so its outcome ends the stage: at once if
 * it tells what the user has to change, else when the others had some seconds to tell what they saw
 * (Spark may take minutes to miss a machine that does not answer).
 */
final class BarrierStage {
  private static final int GRACE_MILLIS = 10_000;
  private static final ClassTag<String> STRING = ClassTag$.MODULE$.apply(String.class);

  private final SparkContext sc;
  private final String tag;
  private final List<TaskOutcome> outcomes = new ArrayList<>();
  private boolean cancelled;

  BarrierStage(SparkContext sc, String tag) {
    this.sc = sc;
    this.tag = tag;
  }

  /** What runs in a task: all rows of its partition in, one outcome as text out. */
  abstract static class Work<T> extends AbstractFunction1<Iterator<T>, Iterator<String>>
      implements Serializable {
    private static final long serialVersionUID = 1L;

    abstract String run(Iterator<T> rows) throws Exception;

    @Override
    public final Iterator<String> apply(Iterator<T> rows) {
      try {
        return Iterator$.MODULE$.single(run(rows));
      } catch (Exception e) {
        throw Unchecked.rethrow(e);
      }
    }
  }

  /** Runs a task for each partition, all at once. Throws what Spark throws when the stage fails. */
  <T> void run(RDD<T> rows, Work<T> work) {
    RDD<String> stage = rows.barrier().mapPartitions(work, false, STRING);
    ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(task -> {
      Thread thread = new Thread(task, "cafetiere-grace");
      thread.setDaemon(true);
      return thread;
    });
    sc.addJobTag(tag);
    try {
      sc.runJob(stage, new First(), new Collect(timer), STRING);
    } catch (Throwable failure) {
      sc.cancelJobsWithTag(tag);
      throw failure;
    } finally {
      sc.removeJobTag(tag);
      timer.shutdownNow();
    }
  }

  /** The outcomes that have arrived, in the order of their arrival. */
  synchronized List<TaskOutcome> outcomes() {
    return new ArrayList<>(outcomes);
  }

  /** Whether the stage was cancelled here, because ranks had reported the loss of others. */
  synchronized boolean wasCancelled() {
    return cancelled;
  }

  private synchronized void cancel() {
    cancelled = true;
    sc.cancelJobsWithTag(tag);
  }

  private synchronized void add(TaskOutcome outcome, ScheduledExecutorService timer) {
    outcomes.add(outcome);
    if (!outcome.isGood() && !timer.isShutdown()) {
      int delay = outcome.isPermanent() ? 0 : GRACE_MILLIS;
      timer.schedule(this::cancel, delay, TimeUnit.MILLISECONDS);
    }
  }

  private static final class First extends AbstractFunction1<Iterator<String>, String>
      implements Serializable {
    private static final long serialVersionUID = 1L;

    @Override
    public String apply(Iterator<String> outcome) {
      return outcome.next();
    }
  }

  private final class Collect extends AbstractFunction2<Object, String, BoxedUnit> {
    private final ScheduledExecutorService timer;

    Collect(ScheduledExecutorService timer) {
      this.timer = timer;
    }

    @Override
    public BoxedUnit apply(Object partition, String outcome) {
      add(TaskOutcome.fromJson(outcome), timer);
      return BoxedUnit.UNIT;
    }
  }
}
