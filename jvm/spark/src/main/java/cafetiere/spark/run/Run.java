// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import cafetiere.core.CafetiereException;
import cafetiere.spark.TrainingSummary;
import cafetiere.spark.cost.Account;
import cafetiere.spark.cost.AccountBook;
import cafetiere.spark.events.RunEvents;
import cafetiere.spark.line.Handshake;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.report.RunReporter;
import cafetiere.spark.store.CheckpointFolder;
import cafetiere.spark.store.CheckpointStore;
import cafetiere.spark.store.CheckpointStore.Checkpoint;
import cafetiere.spark.store.CheckpointStore.Parts;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import org.apache.hadoop.fs.FSError;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.util.SerializableConfiguration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One training as its engine sees it: what it trains on, where it stores, whom it tells. */
public final class Run implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Run.class);
  private static final int OTHERS_TOLD = 3;

  private final long start;
  private final AccountBook book;
  private final Engine engine;
  private final TrainingPlan plan;
  private final Dataset<Row> train;
  private final Dataset<Row> validation;
  private final String id = UUID.randomUUID().toString().substring(0, 8);
  private final String secret = Handshake.newSecret();
  private final String folder;
  private final CheckpointStore checkpoints;
  private final RunReporter reporter;
  private int attempts;
  private long firstStep;

  private Run(Engine engine, TrainingPlan plan, Dataset<Row> train, Dataset<Row> validation,
      double price, Optional<String> owner, long start) throws IOException {
    this.start = start;
    this.book = new AccountBook(start, price);
    this.engine = engine;
    this.plan = plan;
    this.train = train;
    this.validation = validation;
    this.folder = CheckpointFolder.ofRun(sc(), plan, train, validation, id);
    this.checkpoints = new CheckpointStore(folder, sc().hadoopConfiguration());
    this.reporter = new RunReporter(sc(), id, title(), plan.events(), owner);
  }

  /** The same without validation and price, and without a word on the console or in Spark's UI. */
  public static TrainingResult quietly(Engine engine, TrainingPlan plan, Dataset<Row> train) {
    return of(engine, plan, train, null, 0, Optional.empty());
  }

  /** The same without a price and an owner. */
  public static TrainingResult of(Engine engine, TrainingPlan plan, Dataset<Row> train,
      Dataset<Row> validation) {
    return of(engine, plan, train, validation, 0, "");
  }

  /**
   * Trains as {@code plan} says on the rows of {@code train}; {@code validation} is tested on as the
   * solver's test_interval says, or null. Blocks until the training has ended. What the user has to
   * change is told by a {@code PreflightException} before anything starts, or by a
   * {@code CafetiereException} where only the executors could find out. {@code price} is that of a
   * core-hour, for the account; 0 for none. {@code owner} is the uid of the estimator.
   */
  public static TrainingResult of(Engine engine, TrainingPlan plan, Dataset<Row> train,
      Dataset<Row> validation, double price, String owner) {
    return of(engine, plan, train, validation, price, Optional.of(owner));
  }

  private static TrainingResult of(Engine engine, TrainingPlan plan, Dataset<Row> train,
      Dataset<Row> validation, double price, Optional<String> owner) {
    long start = System.nanoTime();
    try (engine) {
      engine.check(plan, train);
      return started(new Run(engine, plan, train, validation, price, owner, start));
    } catch (IOException e) {
      throw new UncheckedIOException("checkpoints or results could not be read or written: "
          + e.getMessage(), e);
    }
  }

  private static TrainingResult started(Run begun) throws IOException {
    try (Run run = begun) {
      return run.trained();
    } catch (Throwable e) {
      CheckpointFolder.leave(begun.checkpoints);
      throw e;
    }
  }

  private TrainingResult trained() throws IOException {
    try {
      return engine.run(this);
    } catch (Throwable e) {
      reporter.fail(e);
      throw e;
    }
  }

  /** An attempt begins, the first or another one, after {@code step}. */
  public void begin(long step) {
    reporter.begin(attempts, step);
    if (attempts == 0) firstStep = step;
    book.attempt();
    if (attempts == 0 && reporter.isSeen()) explain();
    attempts++;
  }

  /** What the run is about to do, for its report. What fails here stops no run. */
  private void explain() {
    try {
      String text = cafetiere.core.Engine.explain(NetDescription.optionsOf(plan));
      events().note(Json.object().put("event", "explained").put("text", text));
    } catch (CafetiereException e) {
      LOG.info("The run is not explained: {}", e.getMessage());
    }
  }

  /** Tells of trouble that the run goes on after, in the log and to those who look at the run. */
  public void warn(String message) {
    LOG.warn("{}", message);
    ObjectNode event = Json.object().put("event", "log").put("level", "warning");
    events().note(event.put("text", message));
  }

  /**
   * The training has ended, and its checkpoints go unless the user wants to keep them.
   *
   * @param measured what the engine knows, by the names of the summary in JSON; the rest is added
   * @param account what the cores were used for
   */
  public TrainingResult end(Parts trained, ObjectNode measured, Account account) {
    if (!keepsCheckpoints()) discard(checkpoints);
    measured.put("engine", engine.name()).put("attempts", attempts).put("first_step", firstStep);
    measured.put("fit_seconds", seconds(System.nanoTime()));
    events().firstStepNanos().ifPresent(at -> measured.put("seconds_to_first_step", seconds(at)));
    TrainingSummary summary = TrainingSummary.fromJson(measured.toString()).with(account);
    reporter.end(summary);
    if (summary.rowsSkipped() > 0) {
      warn(summary.rowsSkipped() + " rows could not be fed and were left out, as skipBadRows asks;"
          + " executors' logs say why");
    }
    return new TrainingResult(trained.model(), trained.state(), summary, events().jsonLines());
  }

  /** Whether its checkpoints stay when it has ended, as the user named a folder for them. */
  public boolean keepsCheckpoints() {
    return !plan.checkpointDir().isEmpty() && !plan.resume();
  }

  /** Removes a store of which the result is in memory; that it stays is no reason to lose the result. */
  void discard(CheckpointStore store) {
    try {
      store.delete();
    } catch (IOException | RuntimeException | FSError e) {
      warn("The training has ended well, but " + store.location() + ", which it needs no more, could not be"
          + " removed: " + e.getMessage());
    }
  }

  /** What the run's time is written down in. */
  public AccountBook book() {
    return book;
  }

  /** Text that no other run has at the same time. */
  public String id() {
    return id;
  }

  public TrainingPlan plan() {
    return plan;
  }

  public Dataset<Row> train() {
    return train;
  }

  /** The rows to test on, or null. */
  public Dataset<Row> validation() {
    return validation;
  }

  public SparkContext sc() {
    return train.sparkSession().sparkContext();
  }

  /** How tasks reach Hadoop's file systems. */
  public SerializableConfiguration hadoop() {
    return new SerializableConfiguration(sc().hadoopConfiguration());
  }

  /** Known to the tasks and the driver only. */
  public String secret() {
    return secret;
  }

  /** Where {@link #checkpoints} lie, as a Hadoop path. */
  public String folder() {
    return folder;
  }

  public CheckpointStore checkpoints() {
    return checkpoints;
  }

  /** The checkpoint to begin an attempt with; where all that there are are damaged, the user is told. */
  public Optional<Checkpoint> newestCheckpoint() throws IOException {
    Optional<Checkpoint> newest = newest(checkpoints);
    if (newest.isEmpty() && checkpoints.hasAny()) {
      warn("None of the checkpoints in " + checkpoints.location() + " is usable, as the driver's log says of"
          + " each: the training begins as if there were none");
    } else if (newest.isEmpty() && attempts == 0 && plan.resume()) {
      tellOthers();
    }
    return newest;
  }

  /** Of a fit that was to resume and finds nothing: what is there, and why it is not taken. */
  private void tellOthers() {
    List<String> others = CheckpointFolder.others(folder, sc().hadoopConfiguration());
    if (others.isEmpty()) return;
    int told = Math.min(others.size(), OTHERS_TOLD);
    warn("resume found no checkpoint of these rows and settings in " + plan.checkpointDir()
        + ", so the training begins anew. " + String.join(", ", others.subList(0, told))
        + (told < others.size() ? " and " + (others.size() - told) + " more" : "")
        + " there are of other rows or settings, or of fits without resume: to go on from a checkpoint there,"
        + " set weights and snapshot to its caffemodel and its solverstate");
  }

  /** The newest good checkpoint of a store, which is asked once more if its file system fails. */
  public Optional<Checkpoint> newest(CheckpointStore store) throws IOException {
    try {
      return store.newest();
    } catch (IOException e) {
      warn("Once more, as that failed: " + e.getMessage());
      return store.newest();
    }
  }

  /** From one checkpoint to the next, where neither params nor solver have an interval. */
  public long checkpointSeconds() {
    return CheckpointFolder.seconds(train.sparkSession());
  }

  public RunEvents events() {
    return reporter.events();
  }

  @Override
  public void close() {
    reporter.close();
  }

  private String title() {
    return engine.name() + ", " + plan.shards() + (plan.shards() == 1 ? " shard" : " shards");
  }

  private double seconds(long nanos) {
    return Math.round((nanos - start) / 1e6) / 1e3;
  }
}
