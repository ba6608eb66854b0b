// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import cafetiere.core.CafetiereException;
import cafetiere.spark.CaffeParams;
import cafetiere.spark.PreflightException;
import cafetiere.spark.cluster.ClusterSlots;
import cafetiere.spark.cluster.DriverPorts;
import cafetiere.spark.cluster.PortRange;
import cafetiere.spark.feed.RowRoom;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.plan.Encryption;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.SyncModes;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.store.CheckpointFolder;
import cafetiere.spark.util.ModelPart;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks before the leap: finds within seconds what would make the barrier stage fail or wait, and
 * says what to change. Spark itself lets a stage without slots wait for ten minutes.
 */
public final class Preflight {
  private static final Logger LOG = LoggerFactory.getLogger(Preflight.class);
  private static final long MIB = 1 << 20;
  private static final String EXECUTOR_JOB = "cafetiere-preflight-executors";
  /** The first job of executors that have just started takes seconds, whatever it does. */
  private static final int EXECUTOR_SECONDS = 10;
  private static final String ENCRYPTION = "spark.io.encryption.enabled";
  /** How long a look at rows may take before the fit goes on without its answer. */
  private static final String ROWS_TIME = "spark.cafetiere.preflightRowsTime";
  private static final String SPECULATION_TIME = "spark.speculation.task.duration.threshold";

  private final SparkContext sc;
  private final SparkConf conf;
  private final TrainingPlan plan;
  private final Dataset<Row> train;
  private final List<String> findings = new ArrayList<>();

  private Preflight(SparkContext sc, SparkConf conf, TrainingPlan plan, Dataset<Row> train) {
    this.sc = sc;
    this.conf = conf;
    this.plan = plan;
    this.train = train;
  }

  /** Throws a {@link PreflightException} with all reasons why the training could not work. */
  public static void check(SparkSession spark, TrainingPlan plan, Dataset<Row> train) {
    SparkContext sc = spark.sparkContext();
    check(sc, sc.getConf(), plan, train);
  }

  /** The same under settings that are not the session's own. */
  static void check(SparkContext sc, SparkConf conf, TrainingPlan plan, Dataset<Row> train) {
    Preflight preflight = new Preflight(sc, conf, plan, train);
    Optional<NetDescription> net = preflight.checkNet();
    net.ifPresent(found -> preflight.checkModelFolder(found.weightBytes()));
    try (FailedStarts failed = new FailedStarts(sc, EXECUTOR_JOB)) {
      Optional<String> slots =
          new SlotCheck(sc, conf, plan.workers(), plan.survivors()).find(failed);
      slots.ifPresent(preflight.findings::add);
      preflight.checkPorts();
      preflight.checkCluster();
      preflight.checkRun(net, slots.isEmpty(), failed);
    }
  }

  /** The same for the rounds engine, which takes the executors that there are. */
  public static void checkRounds(SparkContext sc, SparkConf conf, TrainingPlan plan, Dataset<Row> train,
      RoundsRoom room) {
    Preflight preflight = new Preflight(sc, conf, plan, train);
    preflight.checkBytes(plan.model(), plan.state());
    preflight.findings.addAll(room.findings(conf, Runtime.getRuntime().maxMemory()));
    preflight.checkCluster();
    try (FailedStarts failed = new FailedStarts(sc, EXECUTOR_JOB)) {
      preflight.checkRun(preflight.checkNet(), true, failed);
    }
  }

  /**
   * What can be said of the cluster where net or table allow no plan; with numWorkers alone, as what
   * it would otherwise be depends on executors that are waited for.
   *
   * @param together whether all tasks have to run at once
   */
  public static List<String> ofSettings(SparkContext sc, CaffeParams fit, boolean together) {
    List<String> findings = new ArrayList<>();
    if (together) slots(sc, fit).ifPresent(findings::add);
    try (CheckpointProbe probe = new CheckpointProbe(sc, fit.getCheckpointDir())) {
      probe.finding().ifPresent(findings::add);
    }
    return findings;
  }

  /**
   * Throws a {@link PreflightException} for what needs no look at the table, which may take long to read.
   * Executors are looked for where the settings tell how many will come.
   *
   * @param together whether all tasks have to run at once
   */
  public static void checkSettings(SparkContext sc, CaffeParams fit, boolean together) {
    boolean areTold = ClusterSlots.configured(sc.master(), sc.getConf()).isPresent();
    List<String> findings = ofSettings(sc, fit, areTold && together);
    if (!findings.isEmpty()) throw new PreflightException(findings);
  }

  /**
   * Throws a {@link PreflightException} if a resource manager does not give the executors that numWorkers
   * tasks need: for who is about to read a table, which needs one, too, and would wait for ever. Of
   * other clusters nobody knows yet how many will come.
   */
  public static void checkExecutors(SparkContext sc, CaffeParams fit) {
    if (!ClusterSlots.isManaged(sc.master())) return;
    slots(sc, fit).ifPresent(finding -> {
      throw new PreflightException(List.of(finding));
    });
  }

  private static Optional<String> slots(SparkContext sc, CaffeParams fit) {
    if (fit.getNumWorkers() == 0) return Optional.empty();
    try (FailedStarts failed = new FailedStarts(sc, EXECUTOR_JOB)) {
      return new SlotCheck(sc, sc.getConf(), fit.getNumWorkers(), fit.getSurvivors()).find(failed);
    }
  }

  /** What the settings tell. */
  private void checkCluster() {
    Encryption.finding(plan.encrypt(), sc.isLocal(), conf).ifPresent(findings::add);
    checkPort();
  }

  private void checkPort() {
    if (!conf.contains(PortRange.DRIVER)) return;
    try {
      DriverPorts.listen(conf).close();
    } catch (IOException e) {
      findings.add(e.getMessage() + " (--conf " + PortRange.DRIVER + "=41000-41015)");
    }
  }

  /**
   * What has to be tried; nothing that needs executors where they are not
   * there. Then throws what was found.
   */
  private void checkRun(Optional<NetDescription> net, boolean executors, FailedStarts failed) {
    try (CheckpointProbe probe = new CheckpointProbe(sc, plan.checkpointDir())) {
      probe.finding().ifPresent(findings::add);
      if (executors && !sc.isLocal()) {
        findings.addAll(new BoundedJob<>(sc, EXECUTOR_JOB, EXECUTOR_SECONDS,
            () -> ExecutorCheck.find(sc, plan.workers(), probe.toBeSeen())).result()
            .orElseGet(() -> failed.finding().map(List::of).orElse(List.of())));
      }
    }
    // Later, so that the look at the executors finds all of them idle.
    if (executors && net.isPresent()) {
      sampleJobs(net.get()).forEach(job -> job.result().ifPresent(findings::addAll));
    }
    if (!findings.isEmpty()) throw new PreflightException(findings);
  }

  private List<BoundedJob<List<String>>> sampleJobs(NetDescription net) {
    List<BoundedJob<List<String>>> jobs = new ArrayList<>();
    Optional<LabelCheck> labels = LabelCheck.of(net, plan.schema());
    labels.ifPresent(check -> jobs.add(sampleJob("labels", () -> check.find(
        plan.schema().skipsBadRows() ? check.withoutNulls(train) : train))));
    String labelColumn = labels.map(LabelCheck::column).orElse("");
    jobs.add(sampleJob("numbers",
        () -> NumberCheck.find(plan.schema(), train, labelColumn)));
    return jobs;
  }

  private BoundedJob<List<String>> sampleJob(String what, Supplier<List<String>> work) {
    long seconds = conf.getTimeAsSeconds(ROWS_TIME, "3s");
    return new BoundedJob<>(sc, "cafetiere-preflight-" + what, seconds, work);
  }

  /** Net and solver, then what they will take of each executor's memory. */
  private Optional<NetDescription> checkNet() {
    try {
      NetDescription net = NetDescription.ofTraining(plan);
      checkSurvivors(net.syncMode());
      checkMemory(net.memoryBytes(plan));
      return Optional.of(net);
    } catch (CafetiereException e) {
      findings.add(e.getMessage());
      return Optional.empty();
    }
  }

  private void checkSurvivors(String mode) {
    if (!plan.survivors()) return;
    // A job of one task is copied under this setting alone.
    if (conf.getBoolean("spark.speculation", false) && conf.contains(SPECULATION_TIME)) {
      findings.add("survivors is set and Spark copies every task that runs for longer than "
          + SPECULATION_TIME + ", and a copy takes the place of a member that trains: add --conf"
          + " spark.speculation=false, or leave out " + SPECULATION_TIME);
    }
    List<String> modes = SyncModes.withSurvivors();
    if (modes.contains(mode)) return;
    findings.add("survivors is set and the ranks work together by " + mode + ", which makes every"
        + " step of all ranks: set syncMode to " + String.join(", ", modes)
        + ", or survivors to false");
  }

  /** A model that is files needs a place that outlives the run. */
  private void checkModelFolder(long bytes) {
    long largest = ModelPart.largest(train.sparkSession());
    if (bytes <= largest || !plan.checkpointDir().isEmpty()) return;
    findings.add("the weights take " + mib(bytes) + " MiB, which is more than " + ModelPart.LARGEST
        + " (" + mib(largest) + " MiB), so that the trained model is a file, and there is no place"
        + " for it: set checkpointDir to a folder that driver and executors can read and write");
  }

  /** The rounds begin with bytes alone. */
  private void checkBytes(ModelPart... parts) {
    for (ModelPart part : parts) {
      if (part == null || !part.isFile()) continue;
      findings.add(part.path() + " is larger than " + ModelPart.LARGEST + ", and engine rounds takes"
          + " weights and snapshot as bytes: set engine to barrier, or raise " + ModelPart.LARGEST);
    }
  }

  /** Whether each rank of a host finds a port among those that the settings name. */
  private void checkPorts() {
    int slots = conf.getInt("spark.executor.cores", 1) / conf.getInt("spark.task.cpus", 1);
    boolean together = CheckpointFolder.isLocalMaster(sc);
    int ranks = together ? plan.workers() : Math.max(1, Math.min(slots, plan.workers()));
    try {
      PortRange ports = PortRange.of(conf, PortRange.RANKS);
      if (ports.isAny() || plan.workers() == 1 || ports.count() >= ranks) return;
      findings.add(PortRange.RANKS + " is " + ports + ", and each of " + ranks + " ranks of a host"
          + " needs a port: name " + ranks + " or more, as in " + ports.first() + "-"
          + (ports.first() + ranks - 1));
    } catch (IOException e) {
      findings.add(e.getMessage());
    }
  }

  private void checkMemory(long netBytes) {
    int slots = conf.getInt("spark.executor.cores", 1) / conf.getInt("spark.task.cpus", 1);
    int ranks = Math.max(1, Math.min(slots, plan.workers()));
    long table = SparkInternals.tableBytes(train).orElse(0) * ranks / plan.workers();
    OptionalLong room = RowRoom.bytes(conf);
    spill(conf, table, room).ifPresent(LOG::warn);
    if (!RowRoom.isLimited(conf)) return;
    long overhead = RowRoom.overheadMib(conf);
    long net = mib(netBytes * ranks);
    long rows = mib(Math.min(table, room.orElse(table)));
    if (net + rows <= overhead) return;
    findings.add("the training needs about " + (net + rows) + " MiB of native memory in an executor"
        + " (" + net + " for the net, " + rows + " for the rows) and spark.executor.memoryOverhead leaves "
        + overhead + ": add --conf spark.executor.memoryOverhead=" + (net + rows) * 5 / 4 + "m");
  }

  /** What is said of {@code table} bytes of rows in an executor if they do not fit its memory. */
  static Optional<String> spill(SparkConf conf, long table, OptionalLong room) {
    if (room.isEmpty() || table <= room.getAsLong()) return Optional.empty();
    return Optional.of("the rows are about " + mib(table) + " MiB in an executor, and "
        + mib(table - room.getAsLong()) + " MiB beyond the " + mib(room.getAsLong())
        + " MiB for them (" + RowRoom.SETTING + ") spill to files in "
        + conf.get("spark.local.dir", "Spark's local folder")
        + ": the weights will be the same; if the disk slows the training, use more executors or"
        + " more memory" + (conf.getBoolean(ENCRYPTION, false)
        ? "; the files are not encrypted, though " + ENCRYPTION + " is set" : ""));
  }

  /** Bytes as MiB, rounded up. */
  static long mib(long bytes) {
    return (bytes + MIB - 1) / MIB;
  }
}
