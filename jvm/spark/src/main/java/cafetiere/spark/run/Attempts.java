// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import cafetiere.core.CafetiereException;
import cafetiere.spark.cluster.ClusterSlots;
import cafetiere.spark.cost.AccountBook;
import cafetiere.spark.events.MetricsReceiver;
import cafetiere.spark.events.MetricsRoute;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.SyncModes;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.stall.StallWatch;
import cafetiere.spark.store.CheckpointFolder;
import cafetiere.spark.store.CheckpointStore;
import cafetiere.spark.store.CheckpointStore.Checkpoint;
import cafetiere.spark.store.CheckpointStore.Parts;
import cafetiere.spark.store.SnapshotFiles;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.ModelPart;
import cafetiere.spark.util.Unchecked;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A training whose tasks run from the first step to the last, begun again from the newest good
 * checkpoint when that fails for a reason that may pass. In most modes the weights depend on the shards,
 * not on the ranks, so a run that was interrupted ends with the same bits as one that was not, even if it
 * goes on with fewer executors than it began with.
 */
public final class Attempts {
  private static final Logger LOG = LoggerFactory.getLogger(Attempts.class);
  private static final String SLOT_WAIT = "spark.cafetiere.slotWait";

  /** The tasks of one attempt. */
  public interface Stage {
    /** Runs them to the end; throws what ended them otherwise, unless outcomes tell it. */
    void run() throws Exception;

    /** The outcomes that have arrived, in the order of their arrival. */
    List<TaskOutcome> outcomes();

    /** Whether the tasks were cancelled here, because some had reported the loss of others. */
    boolean wasCancelled();

    /** What it adds to the run's summary. */
    default ObjectNode account() {
      return Json.object();
    }
  }

  /** Makes the tasks of an attempt, whose jobs have the tag, of the rows, a partition a rank. */
  public interface Stages {
    Stage of(String tag, TaskSetup setup, JavaRDD<Iterator<InternalRow>> rows);
  }

  private final Run run;
  private final SparkContext sc;
  private final TrainingPlan plan;
  private final Stages stages;
  private final NetDescription net;
  private final CheckpointStore checkpoints;
  private final RetryPolicy policy = new RetryPolicy();
  private JavaRDD<Iterator<InternalRow>> input;
  private int inputRanks;

  /** Of {@code run}, each attempt by one of {@code stages}. */
  public Attempts(Run run, Stages stages) {
    this.run = run;
    this.sc = run.sc();
    this.plan = run.plan();
    this.stages = stages;
    this.net = NetDescription.ofTraining(plan);
    this.checkpoints = run.checkpoints();
  }

  /** Trains to the end. */
  public TrainingResult train() throws IOException {
    try (MetricsReceiver receiver =
        new MetricsReceiver(sc, run.id(), run.secret(), run.events())) {
      for (int attempt = 0;; attempt++) {
        int ranks = ranks(attempt);
        Optional<Checkpoint> from = run.newestCheckpoint();
        long step = from.map(Checkpoint::step).orElse(0L);
        run.begin(step);
        LOG.info("Run {}, attempt {}: {} ranks from step {}", run.id(), attempt, ranks, step);
        TaskSetup setup =
            setup(attempt, plan.with(ranks, shards(ranks)), from, receiver.address());
        Stage stage = stages.of("cafetiere-" + run.id() + "-" + attempt, setup, input(ranks));
        Exception failure = null;
        try {
          stage.run();
        } catch (Exception e) {
          failure = e;
        }
        if (hasResult(stage, failure)) return finish(stage, ranks);
        decide(stage, failure);
      }
    }
  }

  /** Whether the attempt has ended well; or has told its result, if a rank was lost meanwhile. */
  private boolean hasResult(Stage stage, Exception failure) {
    List<TaskOutcome> outcomes = stage.outcomes();
    if (failure == null && outcomes.stream().allMatch(TaskOutcome::isGood)) return true;
    boolean told = outcomes.stream().anyMatch(outcome -> !outcome.result().isEmpty());
    boolean wrong = outcomes.stream().anyMatch(TaskOutcome::isPermanent);
    if (!told || wrong || isEnded(stage, failure)) return false;
    run.warn("The result is stored and stands, though a rank was lost: "
        + message(stage, failure));
    return true;
  }

  /** Whether somebody has ended the run. */
  private boolean isEnded(Stage stage, Exception failure) {
    return sc.isStopped() || isInterrupted(failure) || isCancelledByUser(stage, failure);
  }

  /** Returns if another attempt is to be made, throws if not. */
  private void decide(Stage stage, Exception failure) throws IOException {
    for (TaskOutcome outcome : stage.outcomes()) {
      if (outcome.isPermanent()) {
        throw new CafetiereException(outcome.code(), outcome.message(), cause(stage, failure));
      }
    }
    if (isEnded(stage, failure)) throw Unchecked.rethrow(failure);
    String message = message(stage, failure);
    long step = reached(failure);
    if (!policy.retryAfter(step, message)) {
      throw new IllegalStateException("the training fails again and again after step " + step
          + ", and what it had is kept in " + checkpoints.location() + ": " + message,
          cause(stage, failure));
    }
    run.warn("The training was interrupted and goes on from step " + step + ": " + message);
  }

  /** The step of the newest checkpoint; an error in its place tells of what came before it, too. */
  private long reached(Exception failure) throws IOException {
    try {
      return run.newest(checkpoints).map(Checkpoint::step).orElse(0L);
    } catch (IOException e) {
      if (failure != null) e.addSuppressed(failure);
      throw e;
    }
  }

  /**
   * The ranks of the next attempt: those planned, or fewer if executors do not come back within
   * spark.cafetiere.slotWait.
   */
  private int ranks(int attempt) {
    long wait = sc.getConf().getTimeAsSeconds(SLOT_WAIT, "120s");
    int slots;
    try {
      slots = ClusterSlots.await(sc, plan.workers(), wait, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      throw Unchecked.rethrow(e);
    }
    if (slots == 0) {
      throw new IllegalStateException("no executor came back within " + wait + " s (" + SLOT_WAIT
          + "); the newest checkpoint is kept in " + checkpoints.location());
    }
    if (slots >= plan.workers()) return plan.workers();
    String mode = net.syncMode();
    int ranks = SyncModes.ranks(mode, slots, plan.shards());
    run.warn("Attempt " + attempt + " goes on with " + ranks + " of " + plan.workers()
        + " ranks, as the cluster has no more slots; " + (shards(ranks) == plan.shards()
            ? "mode " + mode + " promises " + SyncModes.promises(mode)
            : "each rank is one shard, so the weights will differ"));
    return ranks;
  }

  /** The shards of so many ranks: where each of those planned is one shard, so is each that is left. */
  private int shards(int ranks) {
    boolean isShardEach = plan.survivors()
        || plan.shards() == plan.workers() && SyncModes.hasShardPerRank(net.syncMode());
    return isShardEach ? ranks : plan.shards();
  }

  private TaskSetup setup(int attempt, TrainingPlan now, Optional<Checkpoint> from,
      MetricsRoute.Address metrics) {
    String generation = sc.applicationId() + "/" + run.id() + "/" + attempt;
    return new TaskSetup(now, attempt, generation, run.secret(), run.folder(), checkpointSeconds(),
        from.map(Checkpoint::name).orElse(""), from.map(Checkpoint::instructionSet).orElse(""),
        SnapshotFiles.of(net), net.weightBytes() > ModelPart.largest(run.train().sparkSession()),
        StallWatch.seconds(run.train().sparkSession()), run.hadoop(), metrics);
  }

  /** 0 where the params or the solver count steps instead. */
  private long checkpointSeconds() {
    boolean counts = plan.checkpointInterval() > 0 || net.hasSnapshots();
    return counts ? 0 : run.checkpointSeconds();
  }

  /**
   * The rows, one partition a rank; made once for all attempts, so that a retry reads the shuffle
   * that is there. It is always a shuffle: a barrier stage must not change the number of
   * partitions.
   */
  private JavaRDD<Iterator<InternalRow>> input(int ranks) {
    if (input == null || inputRanks != ranks) {
      JavaRDD<InternalRow> rows = partitions(run.train(), ranks);
      input = run.validation() == null
          ? rows.mapPartitions(part -> List.of(part).iterator())
          : rows.zipPartitions(
              partitions(run.validation(), ranks), (a, b) -> List.of(a, b).iterator());
      inputRanks = ranks;
    }
    return input;
  }

  private JavaRDD<InternalRow> partitions(Dataset<Row> table, int ranks) {
    return SparkInternals.rows(plan.schema().select(table).repartition(ranks)).toJavaRDD();
  }

  private TrainingResult finish(Stage stage, int ranks) throws IOException {
    long endNanos = System.nanoTime();
    CheckpointStore results =
        LeaderDuties.results(run.folder(), sc.hadoopConfiguration());
    Checkpoint trained = run.newest(results).orElseThrow(
        () -> new IOException("rank 0 left no model in " + results.location()));
    Parts data = trained.isFiles() ? keep(results, trained) : results.load(trained);
    run.discard(results);
    TaskOutcome first = TaskOutcome.fromJson(trained.note());
    first.events().forEach(run.events()::accept);
    LOG.info("Run {} has ended; its events came by {}", run.id(), first.route());

    ObjectNode measured = (ObjectNode) Json.parse(first.result());
    measured.setAll(stage.account());
    measured.put("executors", Stream.concat(Stream.of(first), stage.outcomes().stream())
        .map(TaskOutcome::executor).distinct().count());
    measured.put("events_by", first.route()).put("encrypted", plan.encrypt());
    List<AccountBook.Task> tasks = stage.outcomes().stream().filter(TaskOutcome::isGood)
        .map(task -> new AccountBook.Task(task.rank(), task.executor(), task.seconds())).toList();
    return run.end(data, measured, run.book().ofTasks(ranks, plan.threads(), tasks, endNanos));
  }

  /** A model that is files stays beside the run's folder, which goes. */
  private Parts keep(CheckpointStore results, Checkpoint trained) throws IOException {
    String folder = CheckpointFolder.ofModel(run.folder(), run.id());
    Parts data = results.move(trained, folder);
    LOG.info("The model is in {} and stays there until somebody removes it", folder);
    return data;
  }

  /** What a rank said of the failure; else the telling line of what Spark says. */
  private static String message(Stage stage, Exception failure) {
    return TaskOutcome.cause(stage.outcomes()).map(TaskOutcome::message)
        .orElseGet(() -> SparkInternals.tellingLine(failure));
  }

  /** None where the stage cancelled its own job: a run that failed would be taken for a cancelled one. */
  private static Exception cause(Stage stage, Exception failure) {
    return stage.wasCancelled() && SparkInternals.isCancelled(failure) ? null : failure;
  }

  private static boolean isCancelledByUser(Stage stage, Exception failure) {
    return failure != null && !stage.wasCancelled() && SparkInternals.isCancelled(failure);
  }

  private static boolean isInterrupted(Exception failure) {
    return failure instanceof InterruptedException;
  }
}
