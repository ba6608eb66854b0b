// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.core.CafetiereException;
import cafetiere.core.table.TableStatistics;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.PreflightException;
import cafetiere.spark.explain.Explanation;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.feed.HeldOutRows;
import cafetiere.spark.feed.RowEncoder;
import cafetiere.spark.internal.NamedColumn;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.keyed.KeyedNets;
import cafetiere.spark.keyed.KeyedParams;
import cafetiere.spark.keyed.KeyedReport;
import cafetiere.spark.keyed.KeyedTraining;
import cafetiere.spark.plan.GivenNet;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.Parallelism;
import cafetiere.spark.plan.SolverSettings;
import cafetiere.spark.preflight.Preflight;
import cafetiere.spark.util.Json;
import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What a fit on a table does: one pass counts, a net is made of the counts, and it is trained. */
final class TableTraining {
  static final String CLASS = "CLASS";
  static final String NUMBER = "NUMBER";
  /** A label of several that hold or do not. */
  static final String FLAGS = "FLAGS";

  private static final String ADAM_W = "AdamW";
  static final int BATCH_TO_PREDICT = 256;

  private TableTraining() {}

  /** What one part of a table has told; {@code error} and its code, where it cannot be used. */
  @DefaultSerializer(JavaSerializer.class) // Kryo cannot make a record
  private record Part(byte[] statistics, CafetiereException.Code code, String error)
      implements Serializable {
    CafetiereException exception() {
      return new CafetiereException(code, error);
    }
  }

  /** Refuses what can be seen before any row is. */
  static TableColumns check(TableParams<?> params, TableColumns.Task task, StructType schema) {
    List<String> findings = new ArrayList<>();
    boolean isIndicated = !params.getValidationIndicatorCol().isEmpty();
    if (isIndicated && params.getValidationFraction() > 0) {
      findings.add("both validationIndicatorCol and validationFraction are set: use one of them");
    }
    if (params.getPatience() > 0 && !isIndicated && params.getValidationFraction() == 0) {
      findings.add("patience is set, and there are no rows to test on: set validationFraction, or"
          + " validationIndicatorCol");
    }
    if (params.isSet(params.minGroupRows()) && params.getGroupCol().isEmpty()) {
      findings.add("minGroupRows is set, and groupCol is not: set groupCol");
    }
    if (task.labels().contains(params.getGroupCol())) {
      findings.add("column '" + params.getGroupCol() + "' is the label, and groupCol: set another groupCol");
    }
    if (!findings.isEmpty()) throw new PreflightException(findings);
    if (!params.getGroupCol().isEmpty()) {
      KeyedParams.check(params);
      KeyedTraining.key(schema, params.getGroupCol());
    }
    return TableColumns.of(params, task, schema);
  }

  /** What training it would do and take. */
  static Explanation explain(
      TableParams<?> params, TableColumns.Task task, Dataset<?> data, boolean probe) {
    TableColumns columns = check(params, task, data.schema());
    if (!params.getGroupCol().isEmpty()) {
      throw new PreflightException(List.of("groupCol is set, and explain tells of one net: leave it empty,"
          + " and give the rows of one key"));
    }
    try (Prepared fit = prepare(params, task, data, columns)) {
      return fit.estimator().explain(fit.train(), probe);
    }
  }

  /**
   * The trained net, which computes the blobs {@code outputs}.
   *
   * @param check is given the label as counted, and may refuse the params before the training
   */
  static CaffeModel train(TableParams<?> params, TableColumns.Task task, Dataset<?> data,
      Consumer<NetDescription.Top> check, String... outputs) {
    TableColumns columns = check(params, task, data.schema());
    Preflight.checkSettings(data.sparkSession().sparkContext(), estimator(params),
        params.getEngine().equals("barrier"));
    try (Prepared fit = prepare(params, task, data, columns)) {
      String net = fit.estimator().getNet();
      check.accept(SavedTableModel.label(net));
      return fitted(params, fit)
          .setNet(net + "state { phase: TEST stage: \"predict\" }\n").setOutputCols(outputs)
          .setLabelCol(task.labels().get(0)).setBatchSize(BATCH_TO_PREDICT);
    }
  }

  private static CaffeModel fitted(TableParams<?> params, Prepared fit) {
    try {
      return fit.estimator().setValidationData(fit.test()).fit(fit.train());
    } catch (RuntimeException e) {
      throw HeldOutRows.explained(e, params.getValidationIndicatorCol(), fit.train(), fit.test());
    }
  }

  /**
   * A training that is ready to begin.
   *
   * @param test rows that are held out; null for none
   * @param given holds the weights to start from until this is closed
   */
  private record Prepared(
      CaffeEstimator estimator, Dataset<Row> train, Dataset<Row> test, GivenNet given)
      implements AutoCloseable {
    @Override
    public void close() {
      given.close();
    }
  }

  /** Makes the net, of a pass over the rows to train on, and an estimator of it. */
  private static Prepared prepare(
      TableParams<?> params, TableColumns.Task task, Dataset<?> data, TableColumns columns) {
    Column held = heldOut(params, columns, data.schema());
    Dataset<Row> test = held == null ? null : data.toDF().filter(held);
    Dataset<Row> train = held == null ? data.toDF() : data.toDF().filter(functions.not(held));
    SparkContext sc = data.sparkSession().sparkContext();
    Parallelism parallel = Parallelism.of(sc, params.getNumWorkers(), params.getShards());
    GivenNet given = GivenNet.of(params.getNet(), data.sparkSession());
    try {
      CaffeEstimator estimator = estimator(params);
      if (!given.weights().isEmpty()) {
        if (!params.getInitialModel().isEmpty()) {
          throw new PreflightException(List.of("both initialModel and net, an ONNX file, have weights"
              + " to start from: set one of them"));
        }
        estimator.setWeights(given.weights());
      }
      estimator.setLabelCol(task.labels().get(0))
          .setNet(net(params, given.net(), train, columns, parallel.shards()))
          .setNumWorkers(parallel.workers()).setShards(parallel.shards());
      return new Prepared(estimator, train, test, given);
    } catch (Throwable e) {
      given.close();
      throw e;
    }
  }

  /** Whether a row is not trained on, but tested on; null if all are trained on. */
  private static Column heldOut(TableParams<?> params, TableColumns columns, StructType table) {
    if (!params.getValidationIndicatorCol().isEmpty()) {
      return HeldOutRows.of(table, params.getValidationIndicatorCol());
    }
    double fraction = params.getValidationFraction();
    if (fraction == 0) return null;
    String id = params.getIdCol();
    Stream<String> names = id.isEmpty() ? Stream.of(columns.schema().table().fieldNames()) : Stream.of(id);
    Column[] hashed = names.map(NamedColumn::of).toArray(Column[]::new);
    // The 53 bits of a double: shares of a hash are equal on all machines.
    Column share = functions.shiftrightunsigned(functions.xxhash64(hashed), 11).multiply(0x1p-53);
    return share.lt(fraction);
  }

  /** A net for each key of {@code groupCol}. */
  static KeyedNets trainKeys(TableParams<?> params, TableColumns.Task task, Dataset<?> data) {
    TableColumns columns = check(params, task, data.schema());
    String label = task.labels().get(0);
    if (columns.kinds().contains(FLAGS) || columns.hasSeveralNumbers()) {
      throw new PreflightException(List.of("column '" + label + "' has several labels, and nets of"
          + " groupCol learn one: take one of them, or leave groupCol empty"));
    }
    ObjectNode options = (ObjectNode) Json.parse(columns.options(data.toDF()));
    try (GivenNet given = GivenNet.of(params.getNet(), data.sparkSession())) {
      if (!given.weights().isEmpty()) {
        throw new PreflightException(List.of("net is an ONNX file, whose weights nets of groupCol do"
            + " not take: give prototxt"));
      }
      options.set("net", netOptions(params, given.net(), columns, 1));
    }
    options.put("solver", solver(params)).put("seed", params.getSeed())
        .put("least_rows", params.getMinGroupRows());
    if (params.getMaxIter() > 0) {
      options.put("max_iter", params.getMaxIter());
    } else {
      options.put("epochs", params.getMaxEpochs());
    }
    return new KeyedTraining(
        params.getGroupCol(), columns.schema(), Set.of(label, params.getWeightCol()),
        options.toString())
        .train(data, new KeyedReport(params.uid(), params.getEvents(), params.getPricePerCoreHour(),
            params.getMaxIter() > 0 ? 0 : params.getMaxEpochs()));
  }

  private static CaffeEstimator estimator(TableParams<?> params) {
    CaffeEstimator estimator = new CaffeEstimator(params.uid()).setSolver(solver(params)).setPredictionCol("")
        .setIdCol(params.getIdCol())
        .setNumWorkers(params.getNumWorkers()).setThreadsPerWorker(params.getThreadsPerWorker())
        .setSeed(params.getSeed()).setPrecision(params.getPrecision())
        .setSyncMode(params.getSyncMode())
        .setSyncPeriod(params.getSyncPeriod()).setEngine(params.getEngine())
        .setEncrypt(params.getEncrypt()).setCheckpointDir(params.getCheckpointDir())
        .setResume(params.getResume()).setEvents(params.getEvents())
        .setPricePerCoreHour(params.getPricePerCoreHour());
    if (!params.getInitialModel().isEmpty()) {
      estimator.setWeights(SavedTableModel.weights(params.getInitialModel()));
    }
    return params.getMaxIter() > 0 ? estimator.setMaxIter(params.getMaxIter())
        : estimator.setEpochs(params.getMaxEpochs());
  }

  /** The prototxt of a solver; its max_iter, which policies want to see, gives way to the params. */
  static String solver(TableParams<?> params) {
    String rule = params.getOptimizer();
    boolean hasMomentum = !List.of("AdaGrad", "RMSProp").contains(rule)
        || params.isSet(params.momentum());
    boolean hasDecay = rule.equals(ADAM_W) || params.isSet(params.weightDecay());
    return "type: \"" + rule + "\"\nbase_lr: " + (float) params.getBaseLr() + "\n"
        + SolverSettings.policy(params.getLrSchedule()) + "\n"
        + (hasMomentum ? "momentum: " + (float) params.getMomentum() + "\n" : "")
        + "weight_decay: " + (hasDecay ? (float) params.getWeightDecay() : 0) + "\nmax_iter: 1\n"
        + (params.getPatience() == 0 ? "" : "early_stopping { patience: " + params.getPatience()
            + " tolerance: " + params.getTol() + " }\n");
  }

  private static String net(
      TableParams<?> params, String given, Dataset<Row> train, TableColumns columns, int shards) {
    try {
      String counted = columns.options(train);
      try (TableStatistics whole = new TableStatistics(counted)) {
        whole.merge(statistics(columns.schema(), counted, train));
        return whole.net(netOptions(params, given, columns, shards).toString());
      }
    } catch (CafetiereException | PreflightException e) {
      requireNumbers(columns, params.getIdCol(), train);
      RuntimeException told = HeldOutRows.explained(e, params.getValidationIndicatorCol(), train, null);
      throw told == e && train.isEmpty() ? noRows() : told;
    }
  }

  private static PreflightException noRows() {
    return new PreflightException(List.of("the table has no rows: nothing can be learned from it"));
  }

  /** Names a row without a number to learn: the engine counts labels as it counts what may be missing. */
  private static void requireNumbers(TableColumns columns, String id, Dataset<Row> train) {
    for (StructField field : columns.fields()) {
      if (!columns.task().labels().contains(field.name())) continue;
      if (!columns.task().kind().equals(NUMBER) || !(field.dataType() instanceof NumericType)) continue;
      Column label = NamedColumn.of(field.name());
      Column row = id.isEmpty() ? functions.lit("") : NamedColumn.of(id);
      for (Row found : train.filter(label.isNull().or(functions.isnan(label))).select(row).takeAsList(1)) {
        throw new PreflightException(List.of("column '" + field.name() + "'"
            + (id.isEmpty() ? "" : ", id " + found.get(0))
            + ": the label is missing; drop such rows, or fill it"));
      }
    }
  }

  /** What is asked of the net. */
  private static ObjectNode netOptions(
      TableParams<?> params, String given, TableColumns columns, int shards) {
    ObjectNode options = columns.task().options();
    ArrayNode labels = options.putArray("labels");
    columns.task().labels().forEach(labels::add);
    ArrayNode layers = options.putArray("layers");
    for (int units : params.getLayers()) layers.add(units);
    options.put("activation", params.getActivation()).put("dropout", params.getDropout());
    options.put("batch_norm", params.getBatchNorm() ? 1 : 0).put("net", given);
    options.put("members", params.getMembers());
    options.put("batch", (params.getBatchSize() + shards - 1) / shards);
    if (params.getOptimizer().equals(ADAM_W)) options.put("step_rows", params.getBatchSize());
    String initial = params.getInitialModel();
    if (!initial.isEmpty() && !SavedTableModel.areWeights(initial)) {
      options.put("initial", SavedTableModel.net(initial));
    }
    ArrayNode frozen = options.putArray("frozen");
    for (String layer : params.getFrozenLayers()) frozen.add(layer);
    return options;
  }

  /** The statistics of all rows, the same bytes however they are distributed. */
  static byte[] statistics(FeedSchema schema, String options, Dataset<Row> table) {
    JavaRDD<InternalRow> rows = SparkInternals.rows(schema.select(table)).toJavaRDD();
    if (rows.getNumPartitions() == 0) {
      throw noRows();
    }
    // An error travels as a value, since Spark would repeat what cannot succeed.
    Part sum = rows.mapPartitions(part -> List.of(count(schema, options, part)).iterator())
        .treeReduce((a, b) -> merged(options, a, b));
    if (sum.error() != null) throw sum.exception();
    return sum.statistics();
  }

  private static Part count(FeedSchema schema, String options, Iterator<InternalRow> rows) {
    try (TableStatistics table = new TableStatistics(options);
        RowEncoder encoder = new RowEncoder(schema, table::add)) {
      while (rows.hasNext()) encoder.add(rows.next());
      encoder.flush();
      return new Part(table.bytes(), null, null);
    } catch (CafetiereException e) {
      return new Part(null, e.code(), e.getMessage());
    }
  }

  private static Part merged(String options, Part a, Part b) {
    if (a.error() != null) return a;
    if (b.error() != null) return b;
    try (TableStatistics table = new TableStatistics(options)) {
      table.merge(a.statistics());
      table.merge(b.statistics());
      return new Part(table.bytes(), null, null);
    } catch (CafetiereException e) {
      return new Part(null, e.code(), e.getMessage());
    }
  }
}
