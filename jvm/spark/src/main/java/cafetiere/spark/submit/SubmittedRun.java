// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.submit;

import cafetiere.core.CafetiereException;
import cafetiere.core.Engine;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.PreflightException;
import cafetiere.spark.internal.NamedColumn;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.netfiles.RowNet;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.NetDescription.Top;
import cafetiere.spark.plan.Parallelism;
import cafetiere.spark.plan.SourceLayer;
import cafetiere.spark.preflight.Preflight;
import cafetiere.spark.store.SnapshotFiles;
import cafetiere.spark.util.HadoopFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.storage.StorageLevel;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What {@code Submit} does: trains, tests and extracts features. */
public final class SubmittedRun {
  private static final Logger LOG = LoggerFactory.getLogger(SubmittedRun.class);
  private static final Pattern NET = Pattern.compile("(?:^|\\s)net\\s*:\\s*['\"]([^'\"]+)['\"]");
  private static final String H5 = ".h5";
  private static final String ID = "SampleID";
  private static final String OWN = " of the table";
  private static final String WEIGHTS = "weights: ";
  /** The engine whose tasks all run at once. */
  private static final String TOGETHER = "barrier";
  private static final int EXIT_FAILED = 1;
  private static final int EXIT_USAGE = 2;

  private final SparkSession spark;
  private final Configuration conf;
  private final Flags flags;
  private final Map<String, Dataset<Row>> tables = new HashMap<>();
  private final String solver;
  private final String net;

  /** A command line in a session that is there. */
  public SubmittedRun(SparkSession spark, String... args) {
    this(spark, Flags.parse(args));
  }

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
      Throwable told = told(e);
      if (told == null) throw e;
      System.err.println("cafetiere: " + words(told, Flags.parse(args)));
      code = EXIT_FAILED;
    }
    if (code != 0) System.exit(code);
  }

  /**
   * Of a failure and its causes the first that says by itself what the user has to change; null: a stack
   * trace is for what has no name here.
   */
  private static Throwable told(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      boolean isTold = cause instanceof CafetiereException || cause instanceof IOException
          || cause instanceof UncheckedIOException || SparkInternals.isTold(cause);
      if (isTold) return cause;
    }
    return null;
  }

  /** Tasks have the bytes of -model without its path, and call them weights. */
  private static String words(Throwable told, Flags flags) {
    String words = told.getMessage() == null ? told.toString() : told.getMessage();
    boolean isOfModel = !flags.has("train") && words.startsWith(WEIGHTS);
    return isOfModel ? flags.get("model", "") + words.substring(WEIGHTS.length() - 2) : words;
  }

  /** Takes these rows where the flag would name a table; null for none. */
  public SubmittedRun with(String flag, Dataset<Row> rows) {
    if (rows != null) tables.put(flag, rows);
    return this;
  }

  /** Does all that the command line asks for. */
  public void run() {
    String format = flags.get("outputFormat", "json");
    if (flags.has("features")) SparkInternals.requireFormat(format);
    if (flags.has("train")) train();
    if (flags.has("features")) {
      features().write().format(format).save(flags.get("output", "output"));
    } else if (flags.has("test")) {
      String text = text(test());
      HadoopFiles.writeText(flags.get("output", "output"), text, conf);
      LOG.info("Tested: {}", text);
    }
  }

  /** Trains, and writes the model and the snapshot of the end. */
  public CaffeModel train() {
    HadoopFiles.requireWritable(flags.get("model", ""), conf);
    CaffeEstimator asked = flags.setParams(new CaffeEstimator());
    if (asked.getEngine().equals(TOGETHER)) Preflight.checkExecutors(spark.sparkContext(), asked);
    Phase phase = phase("TRAIN", "trainData");
    Dataset<Row> rows = phase.table().rows();
    if (!flags.has("persistent")) return train(phase, rows);
    Dataset<Row> kept = rows.persist(StorageLevel.DISK_ONLY());
    try {
      // All of it, before jobs that run side by side would read a part twice.
      LOG.info("-persistent keeps {} rows on Spark's disks", kept.count());
      return train(phase, kept);
    } finally {
      kept.unpersist();
    }
  }

  private CaffeModel train(Phase phase, Dataset<Row> rows) {
    NetDescription description = phase.description();
    NetTable table = phase.table();
    String prefix = snapshotPrefix(description);
    CaffeEstimator estimator = withDevices(flags.setParams(new CaffeEstimator()))
        .setSolver(NetDescription.withField(phase.solver(), "snapshot_prefix", prefix))
        .setNet(table.areFiles() ? table.net(phase.text()) : phase.net())
        .setFeaturesCol(table.dataColumn()).setLabelCol(table.labelColumn())
        .setIdCol(table.idColumn());
    if (phase.isResized()) estimator.setResize(true);
    if (estimator.getValidationIndicatorCol().isEmpty() && isTestedOn(description)) {
      estimator.setValidationData(phase("TEST", "testData").table().rows());
    }
    CaffeModel model = estimator.fit(rows);
    writeModel(model, prefix, description.wantsHdf5());
    LOG.info("Trained: {}", model.result());
    return model;
  }

  /** A CPU stands for each GPU that CaffeOnSpark would have used: a shard of its worker's. */
  private CaffeEstimator withDevices(CaffeEstimator estimator) {
    int devices = Integer.parseInt(flags.get("devices", "1"));
    if (devices == 1) return estimator;
    int workers =
        Parallelism.of(spark.sparkContext(), estimator.getNumWorkers(), 0).workers();
    LOG.info("-devices {}: each of the {} workers has as many shards, on its CPUs", devices, workers);
    return estimator.setNumWorkers(workers).setShards(Math.multiplyExact(workers, devices));
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
    if (flags.has("testData") || tables.containsKey("testData")) return true;
    if (tables.containsKey("trainData")) return false;
    if (layers("TEST").stream().anyMatch(SourceLayer::isOfFiles)) return true;
    return !describe("TEST").json().path("data_layer").path("source").asText("").isEmpty();
  }

  /**
   * SampleID and the blobs of -features for each row. Those without a place for each row, such as an
   * accuracy, are computed of one row at a time, so that they are the row's own.
   */
  public Dataset<Row> features() {
    List<String> blobs = flags.featureBlobs();
    Phase phase = phase("TEST", "testData");
    phase.description().requireBlobs("-features", blobs);
    boolean areAlone = !flags.has("batchSize") && phase.description().haveNoRows(blobs);
    return outputs(blobs, phase, areAlone ? 1 : 0);
  }

  /** The means of all elements of all outputs of the TEST net, in two jobs. */
  public Map<String, List<Double>> test() {
    List<String> blobs = new ArrayList<>();
    Phase phase = phase("TEST", "testData");
    phase.description().json().path("outputs").forEach(name -> blobs.add(name.asText()));
    Dataset<Row> rows = outputs(blobs, phase, 0).cache();
    try {
      return means(rows, blobs);
    } finally {
      rows.unpersist();
    }
  }

  private static Map<String, List<Double>> means(Dataset<Row> rows, List<String> blobs) {
    // A row that -skipBadRows has left out has nulls, which have no size.
    Column isGood = functions.lit(true);
    for (String blob : blobs) isGood = isGood.and(NamedColumn.of(blob).isNotNull());
    List<Row> first = rows.filter(isGood).select(columns(blobs, functions::size)).takeAsList(1);
    if (first.isEmpty()) {
      throw new Flags.UsageException(
          "the table to test on has no rows, or -skipBadRows leaves out all of them");
    }
    List<Column> averages = new ArrayList<>();
    for (int i = 0; i < blobs.size(); i++) {
      Column blob = NamedColumn.of(blobs.get(i));
      for (int k = 0; k < first.get(0).getInt(i); k++) averages.add(functions.avg(blob.getItem(k)));
    }
    Row found = rows.select(averages.toArray(new Column[0])).first();
    Map<String, List<Double>> means = new LinkedHashMap<>();
    int next = 0;
    for (int i = 0; i < blobs.size(); i++) {
      List<Double> values = new ArrayList<>();
      for (int k = 0; k < first.get(0).getInt(i); k++) values.add(found.getDouble(next++));
      means.put(blobs.get(i), values);
    }
    return means;
  }

  /** A line for each blob: its name and its values. */
  private static String text(Map<String, List<Double>> means) {
    StringBuilder text = new StringBuilder();
    means.forEach((blob, values) -> text.append(blob).append(": ")
        .append(values.stream().map(String::valueOf).collect(Collectors.joining(",")))
        .append('\n'));
    return text.toString();
  }

  private static Column[] columns(List<String> names, UnaryOperator<Column> of) {
    return names.stream().map(name -> of.apply(NamedColumn.of(name))).toArray(Column[]::new);
  }

  /**
   * SampleID and the blobs for each row of the test table. Columns whose names blobs have, too, get
   * others; where there are labels they are fed, for accuracy and loss.
   * {@code batch}: rows computed together, 0 for those of -batchSize or the net.
   */
  private Dataset<Row> outputs(List<String> blobs, Phase phase, int batch) {
    NetDescription description = phase.description();
    NetTable table = phase.table();
    List<String> there = Arrays.asList(table.rows().columns());
    Column id = table.idColumn().isEmpty()
        ? functions.monotonically_increasing_id() : NamedColumn.of(table.idColumn());
    List<Column> inputs = new ArrayList<>(List.of(id.cast("string").as(ID)));
    Map<String, String> bound = new LinkedHashMap<>();
    Set<String> taken = new TreeSet<>(String.CASE_INSENSITIVE_ORDER); // as Spark's names are
    taken.addAll(blobs);
    taken.add(ID);
    List<Top> tops = description.tops();
    for (int i = 0; i < tops.size(); i++) {
      String column = table.column(tops.get(i));
      if (!tops.get(i).isFeatures() && !there.contains(column)) continue;
      String input = column;
      while (taken.contains(input)) input += OWN;
      if (!bound.containsValue(input)) inputs.add(NamedColumn.of(column).as(input));
      bound.put(tops.get(i).name(), input);
    }
    CaffeModel model = flags.setParams(CaffeModel.ofWeightsFile(flags.get("model", ""), bound))
        .setNet(table.net(description.netText())).setPredictionCol("")
        .setOutputCols(blobs.toArray(new String[0]));
    if (batch > 0) model.setBatchSize(batch);
    if (phase.isResized()) model.setResize(true);
    Dataset<Row> rows = model.transform(table.rows().select(inputs.toArray(new Column[0])));
    List<Column> columns = new ArrayList<>(List.of(functions.col(ID)));
    blobs.forEach(blob -> columns.add(NamedColumn.of(blob)));
    return rows.select(columns.toArray(new Column[0]));
  }

  /**
   * What a phase of the net runs on.
   *
   * @param net "" if the solver names or has it
   * @param isResized whether the net's layer has its images made to fit
   */
  private record Phase(String solver, String net, NetDescription description, NetTable table,
      boolean isResized) {
    String text() {
      return net.isEmpty() ? description.netText() : net;
    }
  }

  /** Opens the table of a phase; where layers read files, rows of the table feed the net instead. */
  private Phase phase(String name, String flag) {
    List<SourceLayer> layers = layers(name);
    Dataset<Row> given = tables.get(flag);
    RowNet texts = new RowNet(solver, net);
    NetTable table = null;
    if (layers.stream().anyMatch(SourceLayer::isOfFiles)) {
      table = given == null ? NetTable.ofFiles(spark, flags, layers, flag)
          : NetTable.ofFiles(given, flags, layers);
      texts = RowNet.of(solver, net, name, layers, table.rows(),
          SourceLayer.columns(layers, table.dataColumn(), table.labelColumn()));
    }
    NetDescription description = NetDescription.of(texts.solver(), texts.net(), name);
    if (table == null) {
      String text = texts.net().isEmpty() ? description.netText() : texts.net();
      table = given == null ? NetTable.open(spark, flags, description, text, flag)
          : NetTable.of(given, flags, description, text);
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

  /** The net that the solver names: where it says, or beside the solver; "" if it names none. */
  private String netBeside(String solverPath) {
    Matcher net = NET.matcher(solver.replaceAll("#[^\n]*", ""));
    if (!net.find()) return "";
    Path path = Path.of(net.group(1));
    if (Files.exists(path)) return net.group(1);
    Path beside = Path.of(solverPath).resolveSibling(path.getFileName());
    if (Files.exists(beside)) return beside.toString();
    if (Files.exists(Path.of(solverPath))) return net.group(1);
    String stored = HadoopFiles.beside(solverPath, path.getFileName().toString(), conf);
    return HadoopFiles.exists(stored, conf) ? stored : net.group(1);
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
