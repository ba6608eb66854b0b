// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.survivors;

import cafetiere.spark.cluster.ClusterSlots;
import cafetiere.spark.cluster.DriverPorts;
import cafetiere.spark.cluster.ExecutorPulse;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.line.LineServer;
import cafetiere.spark.run.Attempts;
import cafetiere.spark.run.RankWork;
import cafetiere.spark.run.RetryPolicy;
import cafetiere.spark.run.TaskOutcome;
import cafetiere.spark.run.TaskSetup;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.IntSupplier;
import java.util.function.LongSupplier;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the members of a training that goes on while they come and go. Each member is a Spark job of
 * one task: when an executor is lost with the rows it had shuffled, Spark repeats the stages of that
 * job alone, while in a common job it would start all members anew beside those that still run. A
 * job that fails for good is submitted again as long as the training gets on.
 *
 * <p>Members that are there keep their slots while they wait for the others of the first view, so two
 * trainings could wait for each other's slots for ever: one at a time begins in a context.
 */
final class SurvivorStage implements Attempts.Stage {
  private static final Logger LOG = LoggerFactory.getLogger(SurvivorStage.class);

  /** Held from the first member's start until the first view begins, or the attempt is over. */
  private static final Map<SparkContext, Semaphore> STARTS =
      Collections.synchronizedMap(new WeakHashMap<>());

  private static final int STOPPED_POLL_SECONDS = 1;

  private final SparkContext sc;
  private final String tag;
  private final TaskSetup setup;
  private final JavaRDD<Iterator<InternalRow>> rows;
  private final LongSupplier step;
  private final Membership membership;
  private final List<TaskOutcome> outcomes = new ArrayList<>();
  private final List<Thread> jobs = new ArrayList<>();

  /** {@code step} tells how far the training is; {@code warn} hears of trouble. */
  SurvivorStage(SparkContext sc, String tag, TaskSetup setup,
      JavaRDD<Iterator<InternalRow>> rows, LongSupplier step, Consumer<String> warn) {
    this.sc = sc;
    this.tag = tag;
    this.setup = setup;
    this.rows = rows;
    this.step = step;
    this.membership =
        new Membership(setup.plan().workers(), setup.plan().timeoutMillis(), step, warn);
  }

  @Override
  public void run() throws Exception {
    Semaphore start = STARTS.computeIfAbsent(sc, any -> new Semaphore(1, true));
    if (!start.tryAcquire(0, TimeUnit.SECONDS)) {
      LOG.info("{} waits for another training with survivors to begin", tag);
      acquire(start, sc::isStopped);
      keepTurn(start, () -> ClusterSlots.available(sc), setup.plan().workers());
    }
    membership.begun().thenRun(start::release);
    try {
      runMembers();
    } finally {
      membership.begun().complete(null);
    }
  }

  /** Waits for its turn as long as there is a context. */
  static void acquire(Semaphore start, BooleanSupplier isStopped) throws InterruptedException {
    while (!start.tryAcquire(STOPPED_POLL_SECONDS, TimeUnit.SECONDS)) {
      if (isStopped.getAsBoolean()) {
        throw new IllegalStateException("the SparkContext was stopped while the training waited for another"
            + " one with survivors to begin");
      }
    }
  }

  /**
   * Gives the turn up if executors were lost meanwhile, so that the next attempt counts the slots anew, or
   * if they cannot be counted: others wait for the turn.
   */
  static void keepTurn(Semaphore start, IntSupplier available, int workers) throws IOException {
    boolean isKept = false;
    try {
      int slots = available.getAsInt();
      isKept = slots >= workers;
      if (!isKept) {
        throw new IOException("the cluster can run " + slots + " of " + workers
            + " tasks, as executors were lost while the training waited for another one to begin");
      }
    } finally {
      if (!isKept) start.release();
    }
  }

  private void runMembers() throws Exception {
    try (ExecutorPulse pulse = new ExecutorPulse(sc, tag)) {
      try {
        run(pulse);
      } finally {
        SparkInternals.cancelJobs(sc, tag);
        join();
        pulse.awaitTasks();
      }
    }
  }

  private void run(ExecutorPulse pulse) throws Exception {
    try (MembershipServer server = new MembershipServer(DriverPorts.listen(sc.getConf()), tag,
        setup.secret(), membership, () -> replaceSilent(pulse))) {
      LineServer.Address service = new LineServer.Address(
          DriverPorts.host(sc.getConf()), server.port(), setup.secret());
      for (int partition = 0; partition < rows.getNumPartitions(); partition++) {
        jobs.add(start(tasks(service), partition));
      }
      membership.ended().get();
      join();
    } catch (ExecutionException e) {
      throw (Exception) e.getCause();
    }
  }

  @Override
  public synchronized List<TaskOutcome> outcomes() {
    return new ArrayList<>(outcomes);
  }

  @Override
  public boolean wasCancelled() {
    return false;
  }

  @Override
  public ObjectNode account() {
    return membership.account();
  }

  /**
   * One member takes a partition of it; each has its own, as Spark ends all jobs of an RDD when one of
   * its tasks has failed too often.
   */
  private JavaRDD<String> tasks(LineServer.Address service) {
    RankWork work = new SurvivorTask(setup, service);
    return rows.rdd().mapPartitions(work, false, RankWork.STRING).toJavaRDD();
  }

  private Thread start(JavaRDD<String> tasks, int partition) {
    return daemon("" + partition, () -> {
      try {
        keep(tasks, partition);
      } catch (Throwable e) {  // an error, too, as of memory: nobody else would end the wait for this member
        membership.fail(
            new IllegalStateException("the thread of partition " + partition + " has ended: " + e, e));
      }
    });
  }

  /** A member that is silent may yet go on; its executor is replaced when Spark misses it, too. */
  private void replaceSilent(ExecutorPulse pulse) {
    daemon("silent", () -> pulse.replaceSilent(List.of()));
  }

  private Thread daemon(String name, Runnable work) {
    Thread thread = new Thread(work, tag + "-" + name);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  /** Waits for the jobs' ends; one whose executor does not answer is not waited for. */
  private void join() throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ExecutorPulse.GRACE_MILLIS);
    for (Thread job : jobs) {
      long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
      if (left > 0) job.join(left);
    }
  }

  /** Runs one member, again and again where it has to be. */
  private void keep(JavaRDD<String> tasks, int partition) {
    RetryPolicy policy = new RetryPolicy();
    sc.addJobTag(tag);
    while (!membership.ended().isDone()) {
      try {
        add(TaskOutcome.fromJson(tasks.collectPartitions(new int[] {partition})[0].get(0)));
        return;
      } catch (Exception e) {
        String message = SparkInternals.tellingLine(e);
        if (sc.isStopped() || SparkInternals.isCancelled(e)) {
          membership.fail(e);
        } else if (!policy.retryAfter(step.getAsLong(), message)) {
          membership.giveUp(partition, message);
          return;
        }
        LOG.info("The task of partition {} has failed: {}", partition, message);
      }
    }
  }

  private void add(TaskOutcome outcome) throws IOException {
    if (!outcome.isGood() && membership.hasResult()) return;  // of a task that came back too late
    synchronized (this) {
      outcomes.add(outcome);
    }
    if (!outcome.isGood()) membership.fail(new IOException(outcome.message()));
  }
}
