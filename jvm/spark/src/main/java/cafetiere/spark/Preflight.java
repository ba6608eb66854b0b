// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.core.CafetiereException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Looks before the leap: finds within seconds what would make the barrier stage fail or wait, and
 * says what to change. Spark itself lets a stage without slots wait for ten minutes.
 */
public final class Preflight {
  private static final long MIB = 1 << 20;
  private static final int SLOT_SECONDS = 4;
  private static final int START_SECONDS = 60;
  private static final List<String> LOOSE_MODES = List.of("average", "easgd", "diloco");
  private static final double OVERHEAD_FACTOR = 0.1;
  private static final long LEAST_OVERHEAD_MIB = 384;

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
    preflight.checkPorts();
    if (preflight.checkSlots()) preflight.checkFolderAndLabels(net);
    preflight.refuse();
  }

  /** The same for the rounds engine, which takes the executors that there are. */
  static void checkRounds(SparkContext sc, SparkConf conf, TrainingPlan plan, Dataset<Row> train,
      RoundsRoom room) {
    Preflight preflight = new Preflight(sc, conf, plan, train);
    preflight.findings.addAll(room.findings(conf, Runtime.getRuntime().maxMemory()));
    preflight.checkFolderAndLabels(preflight.checkNet());
    preflight.refuse();
  }

  private void checkFolderAndLabels(Optional<NetDescription> net) {
    checkCheckpoints();
    net.ifPresent(this::checkLabels);
  }

  private void refuse() {
    if (!findings.isEmpty()) throw new PreflightException(findings);
  }

  /** Net and solver, then what they will take of each executor's memory. */
  private Optional<NetDescription> checkNet() {
    try {
      NetDescription net =
          NetDescription.ofTraining(plan.solver(), plan.net(), plan.sync());
      checkSurvivors(net.syncMode());
      checkMemory(net.json().path("memory_bytes").asLong());
      return Optional.of(net);
    } catch (CafetiereException e) {
      findings.add(e.getMessage());
      return Optional.empty();
    }
  }

  private void checkSurvivors(String mode) {
    if (plan.survivors() && !LOOSE_MODES.contains(mode)) {
      findings.add("survivors is set and the ranks work together by " + mode + ", which makes every"
          + " step of all ranks: set syncMode to " + String.join(", ", LOOSE_MODES)
          + ", or survivors to false");
    }
  }

  /** Whether all ranks can run at once; nothing that needs executors is tried otherwise. */
  private boolean checkSlots() {
    if (!sc.isLocal() && conf.getBoolean("spark.dynamicAllocation.enabled", false)) {
      findings.add("dynamic allocation is on, and " + (plan.survivors()
          ? "the executors of survivors have to be there before their first job"
          : "Spark runs no barrier stage under it") + ": add"
          + " --conf spark.dynamicAllocation.enabled=false --conf spark.executor.instances="
          + plan.workers() + (plan.survivors() ? ", or set engine to rounds" : ""));
      return false;
    }
    int taskCpus = conf.getInt("spark.task.cpus", 1);
    int configured = ClusterSlots.configured(sc.master(), conf).orElse(0);
    int wait = configured >= plan.workers() ? START_SECONDS : SLOT_SECONDS;
    int slots = waitForSlots(wait);
    if (slots >= plan.workers()) return true;
    findings.add("the training needs " + plan.workers() + " tasks at once (numWorkers) and the"
        + " cluster can run " + slots + " (spark.task.cpus=" + taskCpus + "): add "
        + settingForMoreSlots(taskCpus) + " or set numWorkers to " + Math.max(1, slots));
    return false;
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

  private int waitForSlots(int seconds) {
    try {
      return ClusterSlots.await(sc, plan.workers(), seconds, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      throw Unchecked.rethrow(e);
    }
  }

  private String settingForMoreSlots(int taskCpus) {
    int cores = plan.workers() * taskCpus;
    if (sc.master().startsWith("local-cluster")) {
      return "--master 'local-cluster[" + plan.workers() + "," + taskCpus + ",2048]'";
    }
    if (CheckpointFolder.isLocalMaster(sc)) return "--master 'local[" + cores + "]'";
    if (isManaged()) {
      int perExecutor = Math.max(1, conf.getInt("spark.executor.cores", 1) / taskCpus);
      int executors = (plan.workers() + perExecutor - 1) / perExecutor;
      return "--conf spark.executor.instances=" + executors;
    }
    return "workers to the cluster, or --conf spark.cores.max=" + cores;
  }

  private boolean isManaged() {
    return ClusterSlots.isManaged(sc.master());
  }

  private void checkMemory(long netBytes) {
    if (!isManaged() && !conf.contains("spark.executor.memoryOverhead")) return;
    long heap = conf.getSizeAsMb("spark.executor.memory", "1g");
    double factor = conf.getDouble("spark.executor.memoryOverheadFactor", OVERHEAD_FACTOR);
    long byDefault = Math.max(LEAST_OVERHEAD_MIB, (long) (factor * heap));
    long overhead = conf.getSizeAsMb("spark.executor.memoryOverhead", byDefault + "m");
    int slots = conf.getInt("spark.executor.cores", 1) / conf.getInt("spark.task.cpus", 1);
    int ranks = Math.max(1, Math.min(slots, plan.workers()));
    OptionalLong table = TableSize.bytes(train);
    long net = mib(netBytes * ranks);
    long rows = mib(table.orElse(0) * ranks / plan.workers());
    if (net + rows <= overhead) return;
    findings.add("the training needs about " + (net + rows) + " MiB of native memory in an executor"
        + " (" + net + " for the net, " + rows + " for the rows) and spark.executor.memoryOverhead leaves "
        + overhead + ": add --conf spark.executor.memoryOverhead=" + (net + rows) * 5 / 4 + "m");
  }

  private static long mib(long bytes) {
    return (bytes + MIB - 1) / MIB;
  }

  /** Whether the driver can write there and the executors see what it wrote. */
  private void checkCheckpoints() {
    String folder = CheckpointFolder.of(
        sc, plan.checkpointDir(), "preflight-" + UUID.randomUUID());  // others may look as well
    Path probe = new Path(folder, "probe");
    try {
      FileSystem files = probe.getFileSystem(sc.hadoopConfiguration());
      try {
        files.create(probe, true).close();
        if (!CheckpointFolder.isLocalMaster(sc)
            && CheckpointFolder.isNodeLocal(folder, sc.hadoopConfiguration())) {
          checkVisible(probe);
        }
      } finally {
        files.delete(new Path(folder), true);
      }
    } catch (IOException e) {
      findings.add("checkpoints cannot be written to " + folder + " (" + e.getMessage()
          + "): set checkpointDir to a folder that driver and executors can write to");
    }
  }

  private void checkVisible(Path probe) {
    List<String> blind = BoundedJob.run(sc, "cafetiere-preflight-checkpoints",
        () -> CheckpointFolder.executorsWithout(sc, probe, plan.workers())).orElse(List.of());
    if (!blind.isEmpty()) {
      findings.add("checkpoints would go to " + probe.getParent().getParent() + ", which is a folder"
          + " of one machine and not seen on " + String.join(", ", blind) + ": set checkpointDir to a"
          + " folder of a shared file system, such as hdfs:///user/" + sc.sparkUser()
          + "/checkpoints");
    }
  }

  private void checkLabels(NetDescription net) {
    LabelCheck.of(net, plan.schema())
        .flatMap(check -> BoundedJob.run(sc, "cafetiere-preflight-labels", () -> check.find(train)))
        .ifPresent(findings::addAll);
  }
}
