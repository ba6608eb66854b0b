// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.barrier;

import cafetiere.core.CafetiereException;
import cafetiere.spark.TrainingSummary;
import cafetiere.spark.cluster.ClusterSlots;
import cafetiere.spark.events.EventFiles;
import cafetiere.spark.events.MetricsReceiver;
import cafetiere.spark.events.MetricsRoute;
import cafetiere.spark.events.ProgressLine;
import cafetiere.spark.events.RunEvents;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.line.Handshake;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.preflight.Preflight;
import cafetiere.spark.run.LeaderDuties;
import cafetiere.spark.run.RankWork;
import cafetiere.spark.run.RetryPolicy;
import cafetiere.spark.run.TaskOutcome;
import cafetiere.spark.run.TaskSetup;
import cafetiere.spark.run.TaskStage;
import cafetiere.spark.run.TrainingResult;
import cafetiere.spark.store.CheckpointFolder;
import cafetiere.spark.store.CheckpointStore;
import cafetiere.spark.store.CheckpointStore.Checkpoint;
import cafetiere.spark.survivors.SurvivorStage;
import cafetiere.spark.util.Unchecked;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.SerializableConfiguration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A training on a Spark cluster: one barrier stage from the first step to the last, submitted again
 * from the newest good checkpoint when an executor or a peer is lost. The weights depend on the
 * shards, not on the ranks, so a run that was interrupted ends with the same bits as one that was
 * not, even if it goes on with fewer executors than it began with.
 */
public final class TrainingJob {
  private static final Logger LOG = LoggerFactory.getLogger(TrainingJob.class);
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int MAX_EVENTS = 20_000;
  private static final String SLOT_WAIT = "spark.cafetiere.slotWait";

  private final SparkContext sc;
  private final TrainingPlan plan;
  private final Dataset<Row> train;
  private final Dataset<Row> validation;
  private final String run = UUID.randomUUID().toString().substring(0, 8);
  private final String secret = Handshake.newSecret();
  private final SerializableConfiguration hadoop;
  private final String folder;
  private final CheckpointStore checkpoints;
  private final long checkpointSeconds;
  private final ProgressLine progress;
  private final EventFiles files;
  private final RunEvents events;
  private final RetryPolicy policy = new RetryPolicy();
  private JavaRDD<Iterator<InternalRow>> input;
  private int inputRanks;
  private long firstStep;

  private TrainingJob(SparkContext sc, TrainingPlan plan, Dataset<Row> train,
      Dataset<Row> validation) throws IOException {
    this.sc = sc;
    this.plan = plan;
    this.train = train;
    this.validation = validation;
    this.hadoop = new SerializableConfiguration(sc.hadoopConfiguration());
    this.folder = CheckpointFolder.ofRun(sc, plan, train, run);
    this.checkpoints = new CheckpointStore(folder, hadoop.value());
    boolean counts = plan.checkpointInterval() > 0
        || NetDescription.ofTraining(plan.solver(), plan.net(), plan.sync()).hasSnapshots();
    this.checkpointSeconds = counts ? 0 : CheckpointFolder.seconds(train.sparkSession());
    this.progress = new ProgressLine(System.err, System.console() != null, 0);
    this.files = new EventFiles(plan.events(), sc.hadoopConfiguration());
    this.events = new RunEvents(MAX_EVENTS, progress, files::write);
  }

  /**
   * Trains as {@code plan} says on the rows of {@code train}; {@code validation} is tested on as
   * the solver's test_interval says, or null. Blocks until the training has ended. What the user has to
   * change is told by a {@code PreflightException} before anything starts, or by a
   * {@link CafetiereException} where only the ranks could find out.
   */
  public static TrainingResult run(TrainingPlan plan, Dataset<Row> train, Dataset<Row> validation) {
    long start = System.nanoTime();
    Preflight.check(train.sparkSession(), plan, train);
    try {
      SparkContext sc = train.sparkSession().sparkContext();
      return new TrainingJob(sc, plan, train, validation).train(start);
    } catch (IOException e) {
      throw new UncheckedIOException("checkpoints or results could not be read: "
          + e.getMessage(), e);
    }
  }

  private TrainingResult train(long start) throws IOException {
    try (MetricsReceiver receiver = new MetricsReceiver(sc, run, secret, events)) {
      for (int attempt = 0;; attempt++) {
        int ranks = ranks(attempt);
        Optional<Checkpoint> from = checkpoints.newest();
        long step = from.map(Checkpoint::step).orElse(0L);
        files.startFrom(step);
        events.startAttempt(attempt, step);
        if (attempt == 0) firstStep = step;
        LOG.info("Run {}, attempt {}: {} ranks from step {}", run, attempt, ranks, step);
        TaskSetup setup = setup(attempt, ranks, from, receiver.address());
        TaskStage stage = stage(setup);
        Exception failure = null;
        try {
          stage.run();
        } catch (Exception e) {
          failure = e;
        }
        if (hasResult(stage, failure)) return finish(stage, attempt, start);
        decide(stage, failure);
      }
    } catch (Throwable e) {
      CheckpointFolder.leave(checkpoints);
      throw e;
    } finally {
      files.close();
      progress.finish();
    }
  }

  private TaskStage stage(TaskSetup setup) {
    String tag = "cafetiere-" + run + "-" + setup.attempt();
    JavaRDD<Iterator<InternalRow>> rows = input(setup.plan().workers());
    return plan.survivors() ? new SurvivorStage(sc, tag, setup, rows, events::step)
        : new BarrierStage(sc, tag, rows, new Ranks(new TrainingTask(setup)));
  }

  /** Whether the attempt has ended well; or has told its result, if a rank was lost meanwhile. */
  private boolean hasResult(TaskStage stage, Exception failure) {
    List<TaskOutcome> outcomes = stage.outcomes();
    if (failure == null && outcomes.stream().allMatch(TaskOutcome::isGood)) return true;
    boolean told = outcomes.stream().anyMatch(outcome -> !outcome.result().isEmpty());
    boolean wrong = outcomes.stream().anyMatch(TaskOutcome::isPermanent);
    if (!told || wrong || isEnded(stage, failure)) return false;
    LOG.warn("The result is stored and stands, though a rank was lost: {}",
        message(stage, failure));
    return true;
  }

  /** Whether somebody has ended the run. */
  private boolean isEnded(TaskStage stage, Exception failure) {
    return sc.isStopped() || isInterrupted(failure) || isCancelledByUser(stage, failure);
  }

  /** Returns if another attempt is to be made, throws if not. */
  private void decide(TaskStage stage, Exception failure) throws IOException {
    for (TaskOutcome outcome : stage.outcomes()) {
      if (outcome.isPermanent()) {
        throw new CafetiereException(outcome.code(), outcome.message(), failure);
      }
    }
    if (isEnded(stage, failure)) throw Unchecked.rethrow(failure);
    String message = message(stage, failure);
    long step = checkpoints.newest().map(Checkpoint::step).orElse(0L);
    if (!policy.retryAfter(step, message)) {
      throw new IllegalStateException("the training fails again and again after step " + step
          + ", and what it had is kept in " + checkpoints.location() + ": " + message, failure);
    }
    LOG.warn("The training was interrupted and goes on from step {}: {}", step, message);
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
    if (slots < plan.workers()) {
      LOG.warn("Attempt {} goes on with {} of {} ranks, as the cluster has no more slots; the"
          + " weights will be the same", attempt, slots, plan.workers());
    }
    return Math.min(slots, plan.workers());
  }

  private TaskSetup setup(int attempt, int ranks, Optional<Checkpoint> from,
      MetricsRoute.Address metrics) {
    TrainingPlan now = plan.with(ranks);
    String generation = sc.applicationId() + "/" + run + "/" + attempt;
    return new TaskSetup(now, attempt, generation, secret, folder, checkpointSeconds,
        from.map(Checkpoint::name).orElse(""), from.map(Checkpoint::instructionSet).orElse(""),
        hadoop, metrics);
  }

  /**
   * The rows, one partition a rank; made once for all attempts, so that a retry reads the shuffle
   * that is there. It is always a shuffle: a barrier stage must not change the number of
   * partitions.
   */
  private JavaRDD<Iterator<InternalRow>> input(int ranks) {
    if (input == null || inputRanks != ranks) {
      JavaRDD<InternalRow> rows = partitions(train, ranks);
      input = validation == null
          ? rows.mapPartitions(part -> List.of(part).iterator())
          : rows.zipPartitions(partitions(validation, ranks), (a, b) -> List.of(a, b).iterator());
      inputRanks = ranks;
    }
    return input;
  }

  private JavaRDD<InternalRow> partitions(Dataset<Row> table, int ranks) {
    return SparkInternals.rows(plan.schema().select(table).repartition(ranks)).toJavaRDD();
  }

  private TrainingResult finish(TaskStage stage, int attempt, long start) throws IOException {
    CheckpointStore results = LeaderDuties.results(folder, hadoop.value());
    Checkpoint trained = results.newest().orElseThrow(
        () -> new IOException("rank 0 left no model in " + results.location()));
    results.delete();
    TaskOutcome first = TaskOutcome.fromJson(trained.note());
    first.events().forEach(events::accept);
    if (plan.checkpointDir().isEmpty() || plan.resume()) checkpoints.delete();
    LOG.info("Run {} has ended; its events came by {}", run, first.route());

    ObjectNode result = (ObjectNode) JSON.readTree(first.result());
    result.setAll(stage.account());
    result.put("engine", plan.survivors() ? "survivors" : "barrier");
    result.put("executors", Stream.concat(Stream.of(first), stage.outcomes().stream())
        .map(TaskOutcome::executor).distinct().count());
    result.put("attempts", attempt + 1).put("first_step", firstStep);
    result.put("events_by", first.route()).put("encrypted", plan.encrypt());
    result.put("fit_seconds", seconds(System.nanoTime() - start));
    events.firstStepNanos()
        .ifPresent(at -> result.put("seconds_to_first_step", seconds(at - start)));
    return new TrainingResult(trained.model(), trained.state(),
        TrainingSummary.fromJson(result.toString()), events.jsonLines());
  }

  /** What a rank said of the failure; else the telling line of what Spark says. */
  private static String message(TaskStage stage, Exception failure) {
    return TaskOutcome.cause(stage.outcomes()).map(TaskOutcome::message)
        .orElseGet(() -> SparkInternals.tellingLine(failure));
  }

  private static boolean isCancelledByUser(TaskStage stage, Exception failure) {
    return failure != null && !stage.wasCancelled() && SparkInternals.isCancelled(failure);
  }

  private static boolean isInterrupted(Exception failure) {
    return failure instanceof InterruptedException;
  }

  private static double seconds(long nanos) {
    return Math.round(nanos / 1e6) / 1e3;
  }

  private static final class Ranks extends RankWork {
    private static final long serialVersionUID = 1L;
    private final TrainingTask task;

    Ranks(TrainingTask task) {
      this.task = task;
    }

    @Override
    public TaskOutcome run(Iterator<InternalRow> train, Iterator<InternalRow> validation) {
      return task.run(train, validation);
    }
  }
}
