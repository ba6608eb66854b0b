// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.rounds;

import cafetiere.core.CafetiereException;
import cafetiere.core.CafetiereException.Code;
import cafetiere.core.Rounds;
import cafetiere.spark.cluster.ClusterSlots;
import cafetiere.spark.cluster.ExecutorPulse;
import cafetiere.spark.cluster.PulseServer;
import cafetiere.spark.events.MetricsReceiver;
import cafetiere.spark.events.MetricsRoute;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.line.LineServer;
import cafetiere.spark.plan.Encryption;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.rounds.RoundsTask.Work;
import cafetiere.spark.run.RetryPolicy;
import cafetiere.spark.run.Run;
import cafetiere.spark.run.TrainingResult;
import cafetiere.spark.stall.StallWatch;
import cafetiere.spark.store.CheckpointStore;
import cafetiere.spark.store.CheckpointStore.Checkpoint;
import cafetiere.spark.store.CheckpointStore.Parts;
import cafetiere.spark.store.Contents;
import cafetiere.spark.store.SnapshotFiles;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.ModelPart;
import cafetiere.spark.util.Sha256;
import cafetiere.spark.util.Unchecked;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.SocketTimeoutException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A training as rounds of ordinary Spark jobs, for the modes whose replicas train on their own
 * between exchanges ("average", "diloco"). It needs no barrier, no port between executors and no
 * fixed number of them: each round broadcasts the weights, trains a replica a shard and adds up what
 * they come to. The weights have the same bits wherever the shards run, how often they are repeated,
 * and as those of the barrier engine with as many shards.
 */
final class RoundsJob implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RoundsJob.class);
  /**
   * Replicas with history of their own are stored not before and not after so many rounds; and after so many
   * rounds of which none could be stored, the run ends.
   */
  private static final int LEAST_REPEATED_ROUNDS = 16;
  private static final int MOST_REPEATED_ROUNDS = 64;
  /** Between them: when storing takes no more than this part of the time. */
  private static final double STORING_SHARE = 0.05;

  private final Run run;
  private final SparkContext sc;
  private final int shards;
  private final CheckpointStore checkpoints;
  private final RetryPolicy policy = new RetryPolicy();
  private final boolean keepsHistory;
  private final long checkpointSeconds;
  private final SnapshotFiles snapshots;
  private final RoundsClock clock = new RoundsClock();
  private TrainingPlan plan;
  private Rounds rounds;
  private RoundsStage stage;
  private String instructionSet;
  private JsonNode now;
  private long roundsDone;
  private long testedAt = -1;
  private long stored;
  private long storedAtNanos = System.nanoTime();
  private long storingNanos;
  private int failedInARow;
  private boolean joined;

  /** {@code rounds}: those of the run's plan, from {@link #open}. */
  RoundsJob(Run run, Rounds rounds) {
    this.run = run;
    this.sc = run.sc();
    this.plan = run.plan();
    this.shards = shards(plan);
    this.rounds = rounds;
    this.checkpoints = run.checkpoints();
    this.checkpointSeconds = run.checkpointSeconds();
    this.snapshots = SnapshotFiles.of(NetDescription.ofTraining(plan));
    this.now = Json.parse(rounds.describe());
    this.keepsHistory = now.path("keeps_history").asBoolean();
  }

  /** The weights between the rounds of {@code plan}, whose epochs may not be steps yet. */
  static Rounds open(TrainingPlan plan) {
    return new Rounds(options(plan.ofRows(1)).toString());
  }

  /** Trains to the end. Validation rows are tested on at ends of rounds. */
  TrainingResult train() throws IOException {
    RoundsRows.ShardRows rows = shuffle(run.train());
    if (rows.rows() == 0) {
      throw new CafetiereException(Code.INVALID_ARGUMENT,
          "the table has no rows; there is nothing to train on");
    }
    takeLength(rows.rows());
    boolean tests = run.validation() != null && now.path("test_interval").asLong() > 0;
    RoundsRows.ShardRows heldOut = tests ? shuffle(run.validation()) : null;
    instructionSet = rows.instructionSet();
    try (ExecutorPulse heartbeats = new ExecutorPulse(sc, "");
        PulseServer pulse = PulseServer.replacing(sc, heartbeats, run.id(), plan.timeoutMillis());
        MetricsReceiver receiver = new MetricsReceiver(sc, run.id(), run.secret(), run.events());
        RoundsStage opened = stage(rows, heldOut, pulse.address(), receiver.address())) {
      stage = opened;
      restore();
      run.begin(iter());
      clock.start();
      RoundsLog log = new RoundsLog(run.events(), run.id(), now);
      while (length() > 0) {
        round(log, tests && isTestDue());
        storeAndSpread();
      }
      byte[] state = storeEnd();
      if (tests && testedAt < iter()) {
        stage.begin(iter(), 0, rounds.shared(now.path("floats").asLong()));
        watch(log.test(retried(Work.TEST), iter()));
      }
      log.end();
      while (now.path("posterior").asBoolean()) posterior();
      long skipped = rows.skipped() + (heldOut == null ? 0 : heldOut.skipped());
      return finish(log, state, rows.rows(), skipped);
    }
  }

  @Override
  public void close() {
    rounds.close();
  }

  /** Begins anew with steps in place of epochs. */
  private void takeLength(long rows) {
    if (!plan.epochs().needRows()) return;
    plan = plan.ofRows(rows);
    rounds.close();  // the weights are there once
    rounds = new Rounds(options(plan).toString());
    now = Json.parse(rounds.describe());
  }

  private RoundsStage stage(RoundsRows.ShardRows rows, RoundsRows.ShardRows heldOut,
      LineServer.Address pulse, MetricsRoute.Address driver) {
    RoundsCell.Setup setup = new RoundsCell.Setup(options(plan).toString(), plan.schema(),
        rows.rows(), keepsHistory, instructionSet, run.folder(), run.hadoop(), pulse,
        StallWatch.seconds(run.train().sparkSession()));
    return new RoundsStage(JavaSparkContext.fromSparkContext(sc), setup, driver, shards,
        rows.chunks(), heldOut == null ? null : heldOut.chunks());
  }

  private RoundsRows.ShardRows shuffle(Dataset<Row> table) {
    return RoundsRows.shuffle(plan.schema(), table, shards, now.path("seed").asLong());
  }

  /** Goes on from an interrupted run of the same plan, or from the weights of the plan. */
  private void restore() throws IOException {
    Optional<Checkpoint> newest = plan.resume() ? run.newestCheckpoint() : Optional.empty();
    if (newest.isPresent()) {
      Parts parts = checkpoints.load(newest.get());
      rounds.restore(parts.model().bytes(), parts.state().bytes());
      stage.startFrom(newest.get().name(), newest.get().step());
      stored = newest.get().step();
    } else if (plan.model() != null) {
      byte[] state = plan.state() == null ? null : plan.state().bytes();
      rounds.restore(plan.model().bytes(), state);
      now = Json.parse(rounds.describe());
      if (state != null) store(plan.model().bytes(), state);
    }
    now = Json.parse(rounds.describe());
  }

  private void round(RoundsLog log, boolean test) {
    long begin = iter();
    stage.begin(begin, length(), rounds.shared(now.path("floats").asLong()));
    List<RoundsOutcome> outcomes = retried(test ? Work.TEST_AND_TRAIN : Work.TRAIN);
    if (test) {
      watch(log.test(outcomes, begin));
      testedAt = begin;
      if (length() == 0) return;  // it does not get better: the round does not count
    }
    rounds.end(outcomes.stream().map(RoundsOutcome::floats).toList());
    now = Json.parse(rounds.describe());
    roundsDone++;
    log.round(outcomes, begin, iter(), stage.executorsUsed());
    if (!keepsHistory) stage.startFrom("", iter());  // the next round needs nothing of this one
  }

  /** One more pass over the rows, after the last round and its test. */
  private void posterior() {
    stage.begin(iter(), 0, rounds.beginPosterior());
    rounds.endPosterior(retried(Work.POSTERIOR).stream().map(RoundsOutcome::floats).toList());
    now = Json.parse(rounds.describe());
  }

  /** Runs a job, again where Spark gave it up for a reason that may pass. */
  private List<RoundsOutcome> retried(Work wanted) {
    while (true) {
      long begin = System.nanoTime();
      try {
        List<RoundsOutcome> outcomes = checked(stage.run(wanted));
        if (wanted != Work.HISTORY) clock.job(begin, outcomes);
        return outcomes;
      } catch (CafetiereException e) {
        throw e;
      } catch (Exception e) {
        String message = SparkInternals.tellingLine(e);
        if (sc.isStopped() || e instanceof InterruptedException || SparkInternals.isCancelled(e)
            || !policy.retryAfter(iter(), message)) {
          throw Unchecked.rethrow(e);
        }
        clock.driver(RoundsClock.LOST, begin);
        run.warn("The round after step " + iter() + " was interrupted and is done again: " + message);
      }
    }
  }

  private static List<RoundsOutcome> checked(List<RoundsOutcome> outcomes) {
    for (RoundsOutcome outcome : outcomes) {
      for (JsonNode shard : outcome.shards()) {
        Code code = Code.valueOf(shard.path("code").asText());
        if (code != Code.OK) throw new CafetiereException(code, shard.path("message").asText());
      }
    }
    return outcomes;
  }

  /** Hands what a test came to to early stopping, if the solver asks for it. */
  private void watch(JsonNode outputs) {
    String watched = now.path("early_stopping").path("output").asText("");
    if (watched.isEmpty()) return;
    if (!outputs.has(watched)) {
      throw new CafetiereException(Code.INVALID_ARGUMENT, "early_stopping watches \"" + watched
          + "\", which is no output of the test net, or there are no rows to test on");
    }
    rounds.test(outputs.path(watched).asDouble());
    now = Json.parse(rounds.describe());
  }

  private boolean isTestDue() {
    if (!now.path("early_stopping").isNull()) {
      return now.path("early_stopping").path("due").asBoolean();
    }
    long interval = now.path("test_interval").asLong();
    if (iter() == 0) return now.path("test_initialization").asBoolean();
    return testedAt < 0 ? iter() >= interval : iter() / interval > testedAt / interval;
  }

  private boolean isCheckpointDue() {
    if (length() == 0) return false;  // it comes anyway
    long every = plan.checkpointInterval() > 0 ? plan.checkpointInterval()
        : now.path("snapshot").asLong();
    return keepsHistory && isHistoryDue() || snapshots.isDue(stored, iter())
        || (every > 0 ? iter() / every > stored / every : isTimeForCheckpoint());
  }

  private boolean isTimeForCheckpoint() {
    return System.nanoTime() - storedAtNanos >= TimeUnit.SECONDS.toNanos(checkpointSeconds);
  }

  /** A lost replica repeats the rounds since, and what they began with stays broadcast. */
  private boolean isHistoryDue() {
    if (stage.rounds() < LEAST_REPEATED_ROUNDS) return false;
    return stage.rounds() >= MOST_REPEATED_ROUNDS
        || (System.nanoTime() - storedAtNanos) * STORING_SHARE >= storingNanos;
  }

  /** Shards move from a new checkpoint: without it they would repeat the rounds since the one before. */
  private void storeAndSpread() throws IOException {
    joined |= stage.hasIdleExecutors();
    boolean movesHistory = joined && keepsHistory;
    boolean isStored = (isCheckpointDue() || movesHistory) && checkpoint();
    if (!joined || movesHistory && !isStored) return;
    LOG.info("Executors have joined after step {}: shards find new places", iter());
    stage.spread();
    joined = false;
  }

  /** Stores what the training stands at; false if that failed and is tried again after the next round. */
  private boolean checkpoint() throws IOException {
    long begin = System.nanoTime();
    byte[] state = state();
    try {
      storeAll(state, begin);
      failedInARow = 0;
      return true;
    } catch (IOException | UncheckedIOException e) {
      failedInARow++;
      if (isInterrupted(e)) throw e;
      if (failedInARow == MOST_REPEATED_ROUNDS) {
        throw new IOException(
            "of the last " + failedInARow + " rounds none could be stored: " + e.getMessage(), e);
      }
      run.warn("The training goes on, and stores a checkpoint after the next round: " + e.getMessage());
      return false;
    } finally {
      clock.driver(RoundsClock.STORING, begin);
    }
  }

  /** Stores the end of the training and returns its state, also without if nobody asked for the files. */
  private byte[] storeEnd() throws IOException {
    long begin = System.nanoTime();
    byte[] state = state();
    boolean isAsked = run.keepsCheckpoints() || snapshots.isDue(stored, iter());
    try {
      while (!isEndStored(state, begin, isAsked)) { }
    } finally {
      clock.driver(RoundsClock.STORING, begin);
    }
    return state;
  }

  /** One more try of files that are asked for, as the barrier engine makes one more attempt. */
  private boolean isEndStored(byte[] state, long begin, boolean isAsked) throws IOException {
    try {
      storeAll(state, begin);
      return true;
    } catch (IOException | UncheckedIOException e) {
      if (isInterrupted(e) || isAsked && !policy.retryAfter(iter(), e.getMessage())) throw e;
      run.warn((isAsked ? "Once more, as that failed: " : "The training has ended well without its last"
          + " checkpoint, which is no longer needed: ") + e.getMessage());
      return !isAsked;
    }
  }

  /** Not what a time-out is called, too. */
  private static boolean isInterrupted(Exception e) {
    Throwable cause = e;
    while (cause.getCause() != null && !(cause instanceof InterruptedIOException)) cause = cause.getCause();
    return Thread.currentThread().isInterrupted()
        || cause instanceof InterruptedIOException && !(cause instanceof SocketTimeoutException);
  }

  /** What the training stands at, with the histories of its replicas. */
  private byte[] state() {
    List<byte[]> histories = new ArrayList<>();
    if (keepsHistory) retried(Work.HISTORY).forEach(shard -> histories.add(shard.floats()));
    return rounds.state(histories);
  }

  /** Stores snapshot and checkpoint, which have taken the time since {@code begin}. */
  private void storeAll(byte[] state, long begin) throws IOException {
    byte[] model = rounds.model();
    if (snapshots.isDue(stored, iter())) {
      snapshots.write(iter(), model, state, sc.hadoopConfiguration());
    }
    store(model, state);
    storedAtNanos = System.nanoTime();
    storingNanos = storedAtNanos - begin;
  }

  private void store(byte[] model, byte[] state) throws IOException {
    checkpoints.write(iter(), Contents.of(model, state), shards, instructionSet, run.id(), "");
    stage.startFrom(CheckpointStore.name(iter()), iter());
    stored = iter();
  }

  private TrainingResult finish(RoundsLog log, byte[] state, long rows, long skipped)
      throws IOException {
    byte[] model = rounds.model();
    ObjectNode measured = Json.object().put("steps", iter()).put("rows_given", rows);
    measured.put("rows_skipped", skipped);
    measured.set("rows_per_epoch", log.rowsPerEpoch());
    measured.put("loss", log.loss()).put("seconds", log.seconds());
    measured.put("rows_per_s", log.rows() / log.seconds()).put("sha256", Sha256.of(model));
    measured.set("early_stopping", now.path("early_stopping"));
    measured.put("shards", shards).put("ranks", shards).put("instruction_set", instructionSet);
    measured.put("rounds", roundsDone).put("executors", stage.executorsUsed());
    measured.put("encrypted", Encryption.ofSpark(sc.getConf())).put("events_by", "the driver");
    return run.end(new Parts(ModelPart.of(model), ModelPart.of(state)), measured,
        clock.account(run.book(), ClusterSlots.available(sc), plan.threads()));
  }

  private long iter() {
    return now.path("iter").asLong();
  }

  private long length() {
    return now.path("length").asLong();
  }

  static int shards(TrainingPlan plan) {
    return plan.shards() > 0 ? plan.shards() : plan.workers();
  }

  /** The options of replicas, but for their shards, and of the rounds. */
  private static ObjectNode options(TrainingPlan plan) {
    ObjectNode options = Json.object().put("solver", plan.solver()).put("net", plan.net());
    options.put("shards", shards(plan)).put("threads", plan.threads()).put("seed", plan.seed());
    options.put("prefetch_threads", plan.prefetchThreads());
    options.put("max_iter", plan.maxIter());
    plan.settings().addTo(options);
    plan.schema().addTo(options);
    return options;
  }
}
