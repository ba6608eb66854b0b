// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.submit;

import cafetiere.core.CafetiereException;
import cafetiere.core.Engine;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.PreflightException;
import cafetiere.spark.files.RowNet;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.NetDescription.Top;
import cafetiere.spark.plan.SourceLayer;
import cafetiere.spark.store.SnapshotFiles;
import cafetiere.spark.util.HadoopFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What {@code Submit} does: trains, tests and extracts features. */
public final class SubmittedRun {
  private static final Logger LOG = LoggerFactory.getLogger(SubmittedRun.class);
  private static final Pattern NET = Pattern.compile("(?:^|\\s)net\\s*:\\s*['\"]([^'\"]+)['\"]");
  private static final String H5 = ".h5";
  private static final String ID = "SampleID";
  private static final String INPUT = "cafetiere input ";
  private static final int EXIT_FAILED = 1;
  private static final int EXIT_USAGE = 2;

  private final SparkSession spark;
  private final Configuration conf;
  private final Flags flags;
  private final String solver;
  private final String net;

  private SubmittedRun(SparkSession spark, Flags flags) {
    this.spark = spark;
    this.conf = spark.sparkContext().hadoopConfiguration();
    this.flags = flags;
    String solverPath = flags.get("conf", "");
    this.solver = text(solverPath);
    this.net = text(flags.has("net") ? flags.get("net", "") : netBeside(solverPath));
  }

  /** Runs a command line in its own session. */
  public static void main(String[] args) {
    int code = 0;
    try {
      Flags flags = Flags.parse(args);
      if (flags.has("help")) {
        System.out.print(Flags.help());
        return;
      }
      SparkSession spark = SparkSession.builder().appName("cafetiere").getOrCreate();
      try {
        new SubmittedRun(spark, flags).run();
      } finally {
        spark.stop();
      }
    } catch (Flags.UsageException | PreflightException e) {
      System.err.println("cafetiere: " + e.getMessage());
      code = EXIT_USAGE;
    } catch (Exception e) {
      // What the user has to change says so itself; a stack trace is for what has no name here.
      boolean isTold = e instanceof CafetiereException || e instanceof UncheckedIOException
          || e instanceof AnalysisException;
      if (!isTold) throw e;
      System.err.println("cafetiere: " + e.getMessage());
      code = EXIT_FAILED;
    }
    if (code != 0) System.exit(code);
  }

  /** Runs a command line in a session that is there. */
  public static void run(SparkSession spark, String... args) {
    new SubmittedRun(spark, Flags.parse(args)).run();
  }

  private void run() {
    tellWhatHasNoEffect();
    if (flags.has("train")) train();
    if (flags.has("features")) {
      features();
    } else if (flags.has("test")) {
      test();
    }
  }

  private void train() {
    Phase phase = phase("TRAIN", "trainData");
    NetDescription description = phase.description();
    NetTable table = phase.table();
    String prefix = snapshotPrefix(description);
    CaffeEstimator estimator = flags.setParams(new CaffeEstimator())
        .setSolver(NetDescription.withField(phase.solver(), "snapshot_prefix", prefix))
        .setNet(phase.net())
        .setFeaturesCol(table.dataColumn()).setLabelCol(table.labelColumn())
        .setIdCol(table.idColumn());
    if (phase.isResized()) estimator.setResize(true);
    if (estimator.getValidationIndicatorCol().isEmpty() && isTestedOn(description)) {
      estimator.setValidationData(phase("TEST", "testData").table().rows());
    }
    CaffeModel model = estimator.fit(table.rows());
    writeModel(model, prefix, description.wantsHdf5());
    if (flags.has("events")) {
      HadoopFiles.writeText(flags.get("events", ""), model.events(), conf);
    }
    LOG.info("Trained: {}", model.result());
  }

  /** The begin of the snapshots' paths: beside -model, by the last part of what the solver says. */
  private String snapshotPrefix(NetDescription description) {
    String name = description.snapshotPrefix().replaceFirst(".*/", "");
    return HadoopFiles.beside(flags.get("model", ""), name.isEmpty() ? "snapshot" : name, conf);
  }

  /** The model and, beside it, the snapshot of the end, named and formed as the solver says. */
  private void writeModel(CaffeModel model, String prefix, boolean isHdf5) {
    String target = flags.get("model", "");
    long steps = model.summary().steps();
    if (!model.weightsFile().isEmpty()) {
      String stem = prefix + "_iter_" + steps;
      HadoopFiles.copy(model.weightsFile(), target, conf);
      HadoopFiles.copy(model.weightsFile(), stem + ".caffemodel" + H5, conf);
      HadoopFiles.copy(model.solverStateFile(), stem + ".solverstate" + H5, conf);
      HadoopFiles.deleteFolderOf(model.weightsFile(), conf);
      return;
    }
    byte[] weights = model.weights();
    HadoopFiles.write(target, target.endsWith(H5) ? Engine.weightsHdf5(weights) : weights, conf);
    new SnapshotFiles(prefix, 1, isHdf5).write(steps, weights, model.solverState(), conf);
  }

  /** Rows to test on are there, and the solver wants to. */
  private boolean isTestedOn(NetDescription description) {
    if (description.json().path("solver").path("test_interval").asLong() == 0) return false;
    if (flags.has("testData")) return true;
    if (layers("TEST").stream().anyMatch(SourceLayer::isOfFiles)) return true;
    return !describe("TEST").json().path("data_layer").path("source").asText("").isEmpty();
  }

  private void features() {
    List<String> blobs = flags.featureBlobs();
    outputs(blobs, phase("TEST", "testData")).write().format(flags.get("outputFormat", "json"))
        .save(flags.get("output", "output"));
  }

  /** Writes the mean of every output of the TEST net, a line each: its name and its values. */
  private void test() {
    List<String> blobs = new ArrayList<>();
    Phase phase = phase("TEST", "testData");
    phase.description().json().path("outputs").forEach(name -> blobs.add(name.asText()));
    String text = means(outputs(blobs, phase).cache(), blobs);
    HadoopFiles.writeText(flags.get("output", "output"), text, conf);
    LOG.info("Tested: {}", text);
  }

  /** The means of all elements of all blobs, in two jobs; a line for each blob. */
  private static String means(Dataset<Row> rows, List<String> blobs) {
    try {
      List<Row> first = rows.select(columns(blobs, functions::size)).takeAsList(1);
      if (first.isEmpty()) throw new Flags.UsageException("the table to test on has no rows");
      List<Column> averages = new ArrayList<>();
      for (int i = 0; i < blobs.size(); i++) {
        Column blob = quoted(blobs.get(i));
        for (int k = 0; k < first.get(0).getInt(i); k++) {
          averages.add(functions.avg(blob.getItem(k)));
        }
      }
      Row means = rows.select(averages.toArray(new Column[0])).first();
      StringBuilder text = new StringBuilder();
      int next = 0;
      for (int i = 0; i < blobs.size(); i++) {
        List<String> values = new ArrayList<>();
        for (int k = 0; k < first.get(0).getInt(i); k++) values.add(means.get(next++).toString());
        text.append(blobs.get(i)).append(": ").append(String.join(",", values)).append('\n');
      }
      return text.toString();
    } finally {
      rows.unpersist();
    }
  }

  private static Column[] columns(List<String> names, UnaryOperator<Column> of) {
    return names.stream().map(name -> of.apply(quoted(name))).toArray(Column[]::new);
  }

  /**
   * SampleID and the blobs for each row of the test table. The table's own columns get other names,
   * since blobs may have theirs; where there are labels they are fed, for accuracy and loss.
   */
  private Dataset<Row> outputs(List<String> blobs, Phase phase) {
    NetDescription description = phase.description();
    NetTable table = phase.table();
    List<String> there = Arrays.asList(table.rows().columns());
    Column id = table.idColumn().isEmpty()
        ? functions.monotonically_increasing_id() : quoted(table.idColumn());
    List<Column> inputs = new ArrayList<>(List.of(id.cast("string").as(ID)));
    Map<String, String> bound = new LinkedHashMap<>();
    List<Top> tops = description.tops();
    for (int i = 0; i < tops.size(); i++) {
      String column = table.column(tops.get(i), i);
      if (i > 0 && !there.contains(column)) continue;
      bound.put(tops.get(i).name(), INPUT + i);
      inputs.add(quoted(column).as(INPUT + i));
    }
    CaffeModel model = flags.setParams(CaffeModel.ofWeightsFile(flags.get("model", ""), bound));
    if (phase.isResized()) model.setResize(true);
    Dataset<Row> rows = model
        .setNet(phase.net().isEmpty() ? description.netText() : phase.net()).setPredictionCol("")
        .setOutputCols(blobs.toArray(new String[0]))
        .transform(table.rows().select(inputs.toArray(new Column[0])));
    List<Column> columns = new ArrayList<>(List.of(functions.col(ID)));
    blobs.forEach(blob -> columns.add(quoted(blob)));
    return rows.select(columns.toArray(new Column[0]));
  }

  private static Column quoted(String name) {
    return functions.col("`" + name.replace("`", "``") + "`");
  }

  /**
   * What a phase of the net runs on.
   *
   * @param isResized whether the net's layer has its images made to fit
   */
  private record Phase(String solver, String net, NetDescription description, NetTable table,
      boolean isResized) {}

  /** Opens the table of a phase; where layers read files, rows of the table feed the net instead. */
  private Phase phase(String name, String flag) {
    List<SourceLayer> layers = layers(name);
    RowNet texts = new RowNet(solver, net);
    NetTable table = null;
    if (layers.stream().anyMatch(SourceLayer::isOfFiles)) {
      table = NetTable.ofFiles(spark, flags, layers, flag);
      texts = RowNet.of(solver, net, name, layers, table.rows(), table.columns(layers));
    } else if (RowNet.isNeeded(layers)) {
      texts = RowNet.of(solver, net, name, layers, null, Map.of());
    }
    NetDescription description = NetDescription.of(texts.solver(), texts.net(), name);
    if (table == null) {
      String text = texts.net().isEmpty() ? description.netText() : texts.net();
      table = NetTable.open(spark, flags, description, text, flag);
    }
    boolean isResized = layers.stream().anyMatch(layer -> layer.number("height") > 0);
    return new Phase(texts.solver(), texts.net(), description, table, isResized);
  }

  private List<SourceLayer> layers(String phase) {
    return SourceLayer.of(solver, net, phase);
  }

  private NetDescription describe(String phase) {
    return NetDescription.of(solver, net, phase);
  }

  private void tellWhatHasNoEffect() {
    if (flags.has("persistent")) {
      LOG.info("-persistent has no effect: rows are read once and kept in native memory");
    }
    if (flags.has("devices")) {
      LOG.warn("-devices {} asks for GPUs, which are not supported yet: the CPU is used",
          flags.get("devices", ""));
    }
  }

  /** The net that the solver names: where it says, or beside the solver; "" if it names none. */
  private String netBeside(String solverPath) {
    Matcher net = NET.matcher(solver.replaceAll("#[^\n]*", ""));
    if (!net.find()) return "";
    Path path = Path.of(net.group(1));
    Path beside = Path.of(solverPath).resolveSibling(path.getFileName());
    return !Files.exists(path) && Files.exists(beside) ? beside.toString() : net.group(1);
  }

  private String text(String path) {
    if (path.isEmpty()) return "";
    try {
      if (Files.exists(Path.of(path))) return Files.readString(Path.of(path));
    } catch (IOException e) {
      throw new Flags.UsageException("cannot read " + path + ": " + e.getMessage());
    }
    return HadoopFiles.readText(path, conf);
  }
}
